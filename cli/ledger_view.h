#pragma once
#include <span>
#include <string>
#include <vector>

#include "models/profile.h"

// What a ledger says, as tables and pictures; profile.html and report.html share them.
namespace tally::cli {

using Rows = std::vector<std::vector<std::string>>;

/// A machine's ceilings for numbers of a type, measured now (half a second).
Ceilings measure_ceilings(DType dtype);

/// Sums of the calls that share a key (op, layer, class or phase), the longest first (the most
/// FLOPs where nothing was timed).
std::vector<LedgerTotal> sorted_totals(std::span<const Entry> calls, const std::string& by);

/// A row for each total: calls, time and its share, FLOPs, bytes, rates, intensity and the share of
/// the roof: of the operations a second that its intensity allows, or of the bytes where it does
/// none. More than 100 % means that the data came from a cache; "-" stands for calls that took
/// under ten microseconds in all.
Rows rate_rows(const std::vector<LedgerTotal>& totals, const std::string& by,
               const Ceilings& ceilings);

/// FLOP share beside byte share and time share by class: the lecture's table (L20, L21).
Rows share_rows(std::span<const Entry> calls);
std::string share_picture(std::span<const Entry> calls);

/// Every op as a dot under the ceilings of the machine, numbered as the rows of its table.
std::string roofline_picture(const std::vector<LedgerTotal>& by_op, const Ceilings& ceilings);
Rows roofline_rows(const std::vector<LedgerTotal>& by_op, const Ceilings& ceilings);

/// Live bytes over the calls of a step, the peak named.
std::string memory_picture(std::span<const Entry> calls);
Rows memory_rows(std::span<const Entry> calls);

}  // namespace tally::cli

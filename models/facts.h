#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tally {

/// What a checkpoint says beside its tensors, as text.
using Facts = std::map<std::string, std::string>;

/// Numbers with a blank between, each as the shortest text that reads back to the same bits.
std::string numbers_text(const std::vector<double>& values);
/// The numbers under a name; none where it is not there. Error beginning with `where`, a checkpoint,
/// for anything else than finite numbers.
std::vector<double> number_facts(const Facts& facts, const std::string& name,
                                 const std::string& where);
/// A whole number, `otherwise` where it is not there. Error as above.
int64_t whole_fact(const Facts& facts, const std::string& name, const std::string& where,
                   int64_t otherwise = 0);

}  // namespace tally

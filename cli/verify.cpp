#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/verify_model.h"
#include "cli/verify_ops.h"
#include "cli/verify_optim.h"
#include "cli/verify_tokenizer.h"

namespace tally::cli {
namespace {

int print(const VerifyOptions& o, const std::string& what, const std::vector<Comparison>& rows,
          Json& documents) {
  bool ok = true;
  Json list = Json::array();
  std::vector<std::vector<std::string>> table = {{"tensor", "error", "bound", "verdict"}};
  for (const Comparison& c : rows) {
    ok = ok && c.ok();
    list.push_back({{"what", c.what}, {"error", c.error}, {"bound", c.bound}, {"ok", c.ok()}});
    table.push_back({c.what, fmt::format("{:.2e}", c.error), fmt::format("{:.2e}", c.bound),
                     c.ok() ? "ok" : "BEYOND"});
  }
  documents.push_back({{"path", what}, {"ok", ok}, {"comparisons", list}});
  if (!o.json)
    std::printf("%s: %s\n%s\n", what.c_str(), ok ? "all within tolerance" : "BEYOND tolerance",
                table_text(table).c_str());
  return ok ? 0 : 1;
}

int verify_models(const VerifyOptions& o) {
  int code = 0;
  Json documents = Json::array();
  for (const std::string& folder : o.files) {
    code |= print(o, folder, verify_model(folder, dtype_of_options(o), device_of_options(o)),
                  documents);
  }
  if (o.json) print_json(documents);
  return code;
}

/// Replays recorded ops on the reference and on the device asked for. Cases of ops that this build
/// does not have fail, unless --known passes over them.
int verify_op_files(const VerifyOptions& o) {
  int code = 0;
  Json documents = Json::array();
  std::vector<Device> devices{kReference};
  if (device_of_options(o) != kReference) devices.push_back(device_of_options(o));
  for (const std::string& file : o.files) {
    const OpReport report = verify_ops(file, devices);
    code |= print(o, file, report.rows, documents);
    documents.back()["not_built"] = report.not_built;
    if (report.not_built.empty()) continue;
    if (!o.known) code = 1;
    if (!o.json) {
      std::printf("%s: %zu cases of ops that are not built: %s\n", file.c_str(),
                  report.not_built.size(),
                  fmt::format("{}", fmt::join(report.not_built, ", ")).c_str());
    }
  }
  if (o.json) print_json(documents);
  return code;
}

/// Replays recorded optimizers, on the reference and on the device asked for.
int verify_optimizers(const VerifyOptions& o) {
  int code = 0;
  Json documents = Json::array();
  std::vector<Device> devices{kReference};
  if (device_of_options(o) != kReference) devices.push_back(device_of_options(o));
  for (const std::string& file : o.files)
    code |= print(o, file, verify_optim(file, devices), documents);
  if (o.json) print_json(documents);
  return code;
}

int verify_tokenizers(const VerifyOptions& o) {
  int code = 0;
  Json documents = Json::array();
  for (const std::string& file : o.files) {
    const TokenizerReport report = verify_tokenizer(file, o.tokenizer);
    const bool ok = report.failed.empty() && report.cases > 0;
    if (!ok) code = 1;
    documents.push_back(
        {{"path", file}, {"ok", ok}, {"cases", report.cases}, {"failed", report.failed}});
    if (o.json) continue;
    std::printf("%s: %zu of %lld cases differ%s\n", file.c_str(), report.failed.size(),
                static_cast<long long>(report.cases), report.failed.empty() ? "" : ":");
    for (const std::string& name : report.failed) std::printf("  %s\n", name.c_str());
  }
  if (o.json) print_json(documents);
  return code;
}

}  // namespace

int verify(const VerifyOptions& o) {
  if (o.verb == "ops") return verify_op_files(o);
  if (o.verb == "optim") return verify_optimizers(o);
  if (o.verb == "tokenizer") return verify_tokenizers(o);
  check(o.verb == "model",
        "verify: this build verifies models, ops, optimizers and tokenizers; got ", o.verb);
  return verify_models(o);
}

}  // namespace tally::cli

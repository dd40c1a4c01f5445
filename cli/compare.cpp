#include <cstdio>

#include "cli/common.h"
#include "cli/compare_models.h"
#include "cli/compare_values.h"
#include "cli/run_files.h"
#include "data/file.h"
#include "models/hf_config.h"
#include "models/run_directory.h"

namespace tally::cli {
namespace {

Json rows_json(const std::vector<std::vector<std::string>>& rows) {
  Json list = Json::array();
  for (size_t i = 1; i < rows.size(); ++i) {
    Json row = Json::object();
    for (size_t k = 0; k < rows[0].size(); ++k) row[rows[0][k]] = rows[i][k];
    list.push_back(row);
  }
  return list;
}

/// A run, and not a folder of published weights.
bool holds_a_run(const std::string& path) {
  if (!RunDirectory::is_run(path)) return false;
  return !looks_like_hf_config(read_file(path + "/config.json", size_t{1} << 24));
}

}  // namespace

int report(const ReportVerbOptions& o) {
  write_report(o.run);
  if (o.json)
    print_json(Json{{"page", o.run + "/report.html"}});
  else if (!o.quiet)
    std::printf("%s/report.html\n", o.run.c_str());
  return 0;
}

int compare(const CompareOptions& o) {
  if (o.values) return compare_values(o);
  if (!holds_a_run(o.a) || !holds_a_run(o.b)) return compare_models(o);
  const RunFiles a = read_run(o.a), b = read_run(o.b);
  write_file_atomic(o.out, compare_page(a, b));
  const auto different = difference_rows(a, b);
  const std::string caution = tokenizer_caution(a, b);
  if (o.json) {
    print_json({{"a", rows_json(result_rows(a))},
                {"b", rows_json(result_rows(b))},
                {"different", rows_json(different)},
                {"note", caution},
                {"page", o.out}});
    return 0;
  }
  std::printf("A: %s\n%s\nB: %s\n%s\n", o.a.c_str(), table_text(result_rows(a)).c_str(),
              o.b.c_str(), table_text(result_rows(b)).c_str());
  if (!caution.empty()) std::printf("%s\n\n", caution.c_str());
  if (different.size() == 1)
    std::printf("The configurations are the same.\n");
  else
    std::printf("%s", table_text(different).c_str());
  std::printf("curves of both in %s\n", o.out.c_str());
  return 0;
}

}  // namespace tally::cli

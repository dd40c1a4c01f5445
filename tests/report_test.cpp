// Profiles, pictures and the pages made of them.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "backends/register_all.h"
#include "cli/chart.h"
#include "cli/ledger_view.h"
#include "cli/page.h"
#include "cli/run_files.h"
#include "data/checksum.h"
#include "data/file.h"
#include "models/profile.h"
#include "models/report.h"
#include "models/tensorboard.h"
#include "tests/training_helpers.h"

using namespace tally;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / "tally_report_test";
  Folder() { fs::remove_all(path), fs::create_directories(path / "checkpoints"); }
  ~Folder() { fs::remove_all(path); }
  void write(const char* name, const std::string& text) const {
    write_file_atomic((path / name).string(), text);
  }
  std::string read(const char* name) const { return read_file((path / name).string()); }
};

}  // namespace

TEST_CASE("profile: its calls are those of the account on meta, line for line, live bytes too",
          "[report]") {
  const std::vector<std::pair<const char*, bool>> cases = {
      {"llama-smoke", false}, {"gpt-smoke", false},         {"bert-smoke", false},
      {"t5-smoke", false},    {"transformer-smoke", false}, {"llama-smoke", true},
      {"t5-smoke", true},     {"transformer-smoke", true}};
  for (const auto& [preset, decode] : cases) {
    const ModelConfig config = test::preset_model(preset);
    ProfileOptions o;
    o.batch = 2;
    o.seq = 12;
    o.steps = 1;
    o.warm_up = 1;
    o.decode = decode;
    const Profile p = profile_model(config, o);
    ReportOptions r;
    r.batch = 2;
    r.seq = 12;
    r.train = !decode, r.decode = decode;
    const Report meta = make_report(config, r);
    REQUIRE(p.calls.size() == meta.entries.size());
    for (size_t i = 0; i < p.calls.size(); ++i) {
      const Entry &a = p.calls[i], &b = meta.entries[i];
      INFO(preset << ", call " << i << ": " << a.op << ", " << b.op);
      CHECK(std::string(a.op) == b.op);
      CHECK(std::string(a.module) == b.module);
      CHECK(a.phase == b.phase);
      CHECK(a.cost.flops == b.cost.flops);
      CHECK(a.cost.bytes_read + a.cost.bytes_written == b.cost.bytes_read + b.cost.bytes_written);
      CHECK(a.seconds > 0);
      if (a.phase != Phase::optimizer)  // whose moments are made in the first step, on meta here
        CHECK(a.live - p.calls[0].live == b.live - meta.entries[0].live);
    }
    if (!decode) CHECK(p.peak_bytes == meta.peak);
    CHECK(p.calls_seconds <= p.step_seconds);
    CHECK(p.step_seconds <= 20 * p.mean_seconds);
  }
}

TEST_CASE("profile: the trace is JSON in which every call lies within the span of its module",
          "[report]") {
  ProfileOptions o;
  o.seq = 8;
  o.steps = 1;
  const Profile p = profile_model(test::preset_model("llama-smoke"), o);
  const Json trace = parse_json(chrome_trace(p.calls), "trace");
  size_t calls = 0, spans = 0;
  double end = 0, module_end = 0;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "C") continue;
    const double stop = e["ts"].get<double>() + e["dur"].get<double>();
    if (e["cat"] == "module") {
      ++spans;
      module_end = std::max(module_end, stop);
    } else {
      ++calls;
      end = std::max(end, stop);
      CHECK(e["args"]["flops"].get<double>() >= 0);
    }
  }
  CHECK(calls == p.calls.size());
  CHECK(spans > 6);
  CHECK(module_end == Approx(end));
}

TEST_CASE("profile: refuses what cannot be timed or does not fit", "[report][error]") {
  ProfileOptions o;
  o.seq = 100000;
  CHECK_THROWS_WITH(profile_model(test::preset_model("llama-smoke"), o),
                    Contains("do not fit the context"));
  o.seq = 8;
  o.device = kMeta;
  CHECK_THROWS_WITH(profile_model(test::preset_model("llama-smoke"), o),
                    Contains("meta computes nothing"));
  o.device = kCPU, o.decode = true;
  CHECK_THROWS_WITH(profile_model(test::preset_model("bert-smoke"), o),
                    Contains("--decode: an encoder writes no text; leave it out"));
}

TEST_CASE("chart: ticks are round numbers within the range", "[report]") {
  CHECK(chart::ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(chart::ticks(3, 3, 5).empty());
  for (const auto& [low, high] : {std::pair{0.013, 0.017}, {-5e6, 8e6}, {1.0, 1.0000001}}) {
    const auto t = chart::ticks(low, high, 5);
    CHECK(t.size() >= 2);
    CHECK(t.size() <= 12);
    for (double v : t) CHECK((v >= low - 1e-9 * high && v <= high + 1e-9 * high));
  }
  // Ranges of a few last bits: ticks would be the same number again and again.
  CHECK(chart::ticks(5.0, std::nextafter(5.0, 6.0), 5).size() <= 12);
  CHECK(chart::ticks(1e18, 1e18 + 128, 5).size() <= 12);
  CHECK(chart::tick_text(0) == "0");
  CHECK(chart::tick_text(1234567) == "1235k");
  CHECK(chart::tick_text(2e9) == "2000M");
  CHECK(chart::tick_text(0.25) == "0.25");
}

TEST_CASE("chart: values that are not finite break the line and are never written", "[report]") {
  const double nan = NAN, inf = INFINITY;
  for (bool logarithmic : {false, true}) {
    const std::string svg = chart::plot({"step"}, {"loss", logarithmic},
                                        {{"a", {1, 2, 3, 4, 5}, {1, nan, inf, -3, 0}}});
    CHECK_THAT(svg, !Contains("nan") && !Contains("inf"));
    CHECK_THAT(svg, Contains("<svg") && Contains("</svg>"));
  }
  CHECK_THAT(chart::plot({"x"}, {"y", true}, {}), !Contains("nan"));
  CHECK_THAT(chart::plot({"x"}, {"y"}, {{"a", {7}, {7}}}), !Contains("nan"));
}

TEST_CASE("chart: a point without neighbours is a dot", "[report]") {
  const std::string svg =
      chart::plot({"step"}, {"loss"}, {{"a", {1, 2, 3}, {4, 3, 2}}, {"b", {2}, {3}}});
  CHECK_THAT(svg, Contains("<circle") && Contains("fill=\"#d55e00\""));
  CHECK_THAT(chart::plot({"step"}, {"loss"}, {{"a", {1, 2, 3}, {4, 3, 2}}}), !Contains("<circle"));
}

TEST_CASE("chart: the figure at the right edge lies within the picture", "[report]") {
  const std::string svg = chart::plot({"x", true, 0.01, 1000}, {"y"}, {{"a", {1, 10}, {1, 2}}});
  const size_t text = svg.find(">1000<"), at = svg.rfind("x=\"", text);
  REQUIRE(text != std::string::npos);
  CHECK(std::stod(svg.substr(at + 3)) + 14 < 480);
}

TEST_CASE("profile: the share of the roof is left out where too little was timed", "[report]") {
  Ceilings c;
  c.flops = 1e11;
  c.levels = {{"memory", 1e10}};
  const auto last_cell = [&](double seconds) {
    const LedgerTotal t{"add.forward", {1e6, 1e7, 0}, {}, seconds, 1};
    CHECK(cli::roofline_rows({t}, c)[1].back() == cli::rate_rows({t}, "op", c)[1].back());
    return cli::rate_rows({t}, "op", c)[1].back();
  };
  CHECK(last_cell(0) == "-");
  CHECK(last_cell(9e-6) == "-");
  CHECK(last_cell(1e-3) == "100%");
  CHECK(last_cell(1e-4) == "1000%");  // from a cache: not capped
}

TEST_CASE("report: the table of the loss has even steps", "[report]") {
  const Folder run;
  std::string lines;
  for (int step = 1; step <= 120; ++step) {
    const bool evaluated = step % 25 == 0;
    if (step % 10 != 0 && !evaluated && step != 1) continue;
    lines += R"({"step":)" + to_text(step) + R"(,"tokens":)" + to_text(step * 1'000'000) +
             R"(,"loss":)" + to_text(1000 + step);
    lines += (evaluated ? R"(,"val_loss":)" + to_text(2000 + step) : "") + "}\n";
  }
  run.write("config.json", R"({"model": {}})");
  run.write("metrics.jsonl", lines);
  cli::write_report(run.path.string());
  const std::string page = run.read("report.html");
  CHECK_THAT(page, Contains(">120000000<"));  // whole numbers as such
  for (int step : {25, 50, 75, 100}) CHECK_THAT(page, Contains(">" + to_text(2000 + step) + "<"));
  CHECK_THAT(page, Contains(">1050<") && Contains(">1120<") && !Contains(">1030<"));
}

TEST_CASE("report: a damaged file is refused by its name and field", "[report][error]") {
  const Folder run;
  run.write("config.json", R"({"model": {}})");
  run.write("metrics.jsonl", "{\"step\":1}\n{\"step\":1.5}\n");
  CHECK_THROWS_WITH(cli::read_run(run.path.string()),
                    Contains("metrics.jsonl: line 2: step must be a whole number"));
  run.write("metrics.jsonl", "");
  run.write("ledger.json", R"({"levels": [{"name": "memory", "bytes_per_s": "fast"}]})");
  CHECK_THROWS_WITH(cli::read_run(run.path.string()),
                    Contains("ledger.json: levels[0]: bytes_per_s must be a number"));
}

TEST_CASE("report: of a long run some thousand lines are read, its peaks among them", "[report]") {
  const Folder run;
  run.write("config.json", R"({"model": {"name": "m"}})");
  const int steps = 30000;
  std::string lines;
  for (int step = 1; step <= steps; ++step) {
    lines += fmt::format("{{\"step\":{},\"loss\":{}", step, step == 12347 ? 50.0 : 1.0 / step);
    if (step % 40 == 0) lines += fmt::format(",\"val_loss\":{}", step);
    lines += "}\n";
  }
  run.write("metrics.jsonl", lines);
  const cli::RunFiles r = cli::read_run(run.path.string());
  CHECK(r.metrics.size() < 9000);
  const cli::Curve loss = cli::curve(r, "loss"), validation = cli::curve(r, "val_loss");
  CHECK(std::ranges::is_sorted(loss.step));
  CHECK(std::ranges::adjacent_find(loss.step) == loss.step.end());
  CHECK(loss.step.front() == 1);
  CHECK(loss.step.back() == steps);
  CHECK(std::ranges::count(loss.value, 50.0) == 1);
  CHECK(validation.step.size() == steps / 40);  // few enough to stay
}

TEST_CASE("chart: a long curve is thinned and keeps its extremes", "[report]") {
  chart::Series s{"a", {}, {}};
  for (int i = 0; i < 100000; ++i) {
    s.x.push_back(i);
    s.y.push_back(i == 61803 ? 50 : std::sin(i * 0.01));
  }
  const std::string svg = chart::plot({"x"}, {"y", false, -1.0, 50.0}, {s});
  CHECK(svg.size() < 20000);
  CHECK_THAT(svg, Contains(" 10.0L"));  // the top of the picture: the one high value
}

TEST_CASE("report: a page of a run holds its figures, and texts cannot break it", "[report]") {
  const Folder run;
  run.write("config.json", R"({"model": {"name": "<script>x</script>"}, "train": {"lr": 0.001}})");
  run.write("env.json", R"({"cpu": "a & b"})");
  run.write("metrics.jsonl",
            "{\"step\":1,\"loss\":2.5,\"lr\":0.1}\n{\"step\":2,\"loss\":1.25,\"val_loss\":1.75}\n"
            "{\"step\":3,\"lo");
  run.write("samples.jsonl", "{\"step\":2,\"text\":\"</table><b>\"}\n");
  cli::write_report(run.path.string());
  const std::string page = run.read("report.html");
  CHECK_THAT(page, Contains("1.25 nats per token") && Contains("1.75 nats per token"));
  CHECK_THAT(page, Contains("&lt;script&gt;") && !Contains("<script"));
  CHECK_THAT(page, Contains("&lt;/table&gt;&lt;b&gt;") && Contains("a &amp; b"));
  CHECK_THAT(page, !Contains("http://") && !Contains("https://"));
}

TEST_CASE("report: the ledger of a step comes back from its file", "[report]") {
  const Folder run;
  run.write("config.json", R"({"model": {"name": "m"}})");
  ProfileOptions o;
  o.seq = 8;
  o.steps = 1;
  const Profile p = profile_model(test::preset_model("gpt-smoke"), o);
  cli::save_ledger(run.path.string(), {p.calls, {1e9, {{"L1", 4e9}, {"memory", 1e9}}}, 0.5});
  const cli::RunFiles r = cli::read_run(run.path.string());
  REQUIRE(r.ledger.calls.size() == p.calls.size());
  CHECK(r.ledger.step_seconds == 0.5);
  CHECK(r.ledger.ceilings.memory() == 1e9);
  CHECK(r.ledger.ceilings.roof(0.5) == 5e8);
  for (const char* by : {"op", "layer", "class", "phase"}) {
    const auto a = cli::sorted_totals(p.calls, by), b = cli::sorted_totals(r.ledger.calls, by);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i].key == b[i].key);
      CHECK(a[i].cost.flops == b[i].cost.flops);
    }
  }
  cli::write_report(run.path.string());
  CHECK_THAT(run.read("report.html"), Contains("Roofline") && Contains("linear.backward") &&
                                          Contains("Memory over a step") && !Contains("nan"));
}

TEST_CASE("report: two runs are compared field by field", "[report]") {
  const Folder a;
  a.write("config.json", R"({"model": {"layers": 2, "d": 8}})");
  a.write("metrics.jsonl", "{\"step\":1,\"loss\":2.5}\n");
  cli::RunFiles x = cli::read_run(a.path.string()), y = x;
  CHECK(cli::difference_rows(x, y).size() == 1);
  y.config["model"]["layers"] = 3;
  y.config["extra"] = true;
  const auto rows = cli::difference_rows(x, y);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1] == std::vector<std::string>{"model.layers", "2", "3"});
  CHECK(rows[2] == std::vector<std::string>{"extra", "-", "true"});
  CHECK_THAT(cli::compare_page(x, y), Contains("model.layers") && Contains("A training"));
  CHECK(cli::tokenizer_caution(x, y).empty());
  x.environment["tokenizer_hash"] = "one";
  CHECK(cli::tokenizer_caution(x, y).empty());  // one of them does not say
  y.environment["tokenizer_hash"] = "two";
  CHECK_THAT(cli::tokenizer_caution(x, y), Contains("bits per byte"));
  CHECK_THAT(cli::compare_page(x, y), Contains("Not the same tokens"));
  CHECK_THROWS_WITH(cli::read_run("/nowhere"), Contains("is not the directory of a run"));
}

TEST_CASE("tensorboard: records have the sums and the fields of TensorFlow's format", "[report]") {
  CHECK(crc32c("123456789") == 0xe3069283u);  // the check value of CRC-32C
  const Folder run;
  TensorBoardLog log((run.path / "tb").string(), 0);
  log.add(300, {{"loss", 1.5}, {"lr", 0.25}});
  const std::string bytes = read_file(log.file());
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t sum = 0;
    REQUIRE(at + 12 <= bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&sum, bytes.data() + at + 8, 4);
    CHECK(sum == masked_crc32c(std::string_view(bytes).substr(at, 8)));
    REQUIRE(at + 16 + length <= bytes.size());
    events.push_back(bytes.substr(at + 12, length));
    std::memcpy(&sum, bytes.data() + at + 12 + length, 4);
    CHECK(sum == masked_crc32c(events.back()));
    at += 16 + length;
  }
  REQUIRE(events.size() == 2);
  CHECK_THAT(events[0], Contains("brain.Event:2"));
  // step 300 as a varint in field 2; tag and simple_value 1.5f of the first scalar.
  CHECK_THAT(events[1], Contains(std::string("\x10\xac\x02", 3)));
  CHECK_THAT(events[1], Contains(std::string("\x0a\x04loss\x15\x00\x00\xc0\x3f", 11)));
  CHECK_THROWS_WITH(TensorBoardLog("/proc/tb", 0), Contains("cannot make this folder"));
}

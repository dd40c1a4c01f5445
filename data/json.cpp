#include "data/json.h"

#include <iterator>
#include <vector>

#include "core/error.h"
#include "data/file.h"

namespace tally {
namespace {

constexpr size_t kMaxDepth = 64;

/// Walks the text for the parser and counts what was consumed, so that errors found above the
/// grammar (a duplicate key) can name line and column too.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *consumed_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& o) const { return at_ == o.at_; }
  bool operator!=(const CountingIterator& o) const { return at_ != o.at_; }

 private:
  const char* at_;
  const char** consumed_;
};

/// Cut to a length that fits a message, and without control characters: it goes to a terminal.
std::string shortened(std::string_view text, size_t limit = 80) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() <= limit ? out : out + "...";
}

/// Bytes that may not be UTF-8 are shown as '?'.
std::string ascii(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text;
}

/// Builds the document and refuses what the grammar allows but a second reader could read
/// differently: duplicate keys, numbers that need rounding to fit, bottomless nesting.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& origin)
      : text_(text), origin_(origin), consumed_(text.data()) {}

  const char** consumed() { return &consumed_; }
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr), true; }
  bool boolean(bool v) override { return put(v), true; }
  bool number_integer(number_integer_t v) override { return put(v), true; }
  bool number_unsigned(number_unsigned_t v) override { return put(v), true; }
  bool number_float(number_float_t v, const string_t& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) {
      refuse("the integer " + shortened(digits) + where() + " does not fit in 64 bits");
    }
    return put(v), true;
  }
  bool string(string_t& v) override { return put(std::move(v)), true; }
  bool binary(binary_t&) override { refuse("binary values are not JSON"); }

  bool start_object(size_t) override { return open(Json::object()), true; }
  bool end_object() override { return open_.pop_back(), true; }
  bool start_array(size_t) override { return open(Json::array()), true; }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(string_t& name) override {
    Level& level = open_.back();
    if (level.value->contains(name)) {
      refuse("the key \"" + shortened(name) + "\" occurs twice in one object; keep one of them");
    }
    level.key = std::move(name);
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what": position is ours.
    std::string what = e.what();
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    if (what.starts_with("parse error at")) what.erase(0, what.find(": ") + 2);
    refuse("not valid JSON: " + ascii(shortened(what, 240)));
  }

 private:
  struct Level {
    Json* value;
    std::string key;  // of the member being read, if value is an object
  };

  [[noreturn]] void refuse(const std::string& what) const {
    size_t line = 1, column = 0;
    for (const char* c = text_.data(); c < consumed_; ++c) {
      ++column;
      if (*c == '\n' && c + 1 < consumed_) ++line, column = 0;
    }
    fail(origin_, ": line ", line, ", column ", column, ": ", what);
  }

  /// " of a.b[2]": the way from the root to the value being read.
  std::string where() const {
    std::string path;
    for (const Level& level : open_) {
      if (level.value->is_array())
        path += "[" + std::to_string(level.value->size()) + "]";
      else
        path += (path.empty() ? "" : ".") + shortened(level.key);
    }
    return path.empty() ? path : " of " + path;
  }

  Json* put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[open_.back().key] = std::move(value));
  }

  void open(Json container) {
    if (open_.size() >= kMaxDepth) refuse("more than 64 levels of nesting");
    open_.push_back({put(std::move(container)), {}});
  }

  std::string_view text_;
  const std::string& origin_;
  const char* consumed_;
  Json root_;
  std::vector<Level> open_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin, bool comments) {
  check(
      !text.starts_with("\xEF\xBB\xBF"), origin,
      ": line 1, column 1: the file begins with a byte order mark (EF BB BF); JSON begins with its "
      "first value: save the file as UTF-8 without BOM");
  Builder builder(text, origin);
  Json::sax_parse(CountingIterator(text.data(), builder.consumed()),
                  CountingIterator(text.data() + text.size(), builder.consumed()), &builder,
                  nlohmann::detail::input_format_t::json, true, comments);
  return builder.take();
}

Json read_json(const std::string& path, bool comments, size_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path, comments);
}

}  // namespace tally

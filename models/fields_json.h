#pragma once
// Values of fields from and to JSON; for the .cpp files that read configurations only.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "data/json.h"
#include "data/utf8.h"
#include "models/fields.h"
#include "models/suggest.h"

namespace tally::detail {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

/// "12 (number)", for errors.
inline std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text + " (" + value.type_name() + ")";
}

inline std::vector<std::string> strings(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

template <class S>
std::vector<std::string> field_names(std::span<const Field<S>> fields) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.emplace_back(field.name);
  return names;
}

inline int64_t integer(const Json& value, const std::string& where) {
  check(value.is_number_integer(), where, " must be an integer; it is ", shown(value));
  check(!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t(INT64_MAX), where,
        " does not fit in 63 bits; it is ", shown(value));
  return value.get<int64_t>();
}

template <class S>
void set_field(S& values, const Field<S>& field, const Json& value, const std::string& where) {
  std::visit(Overload{
                 [&](int64_t S::*member) { values.*member = integer(value, where); },
                 [&](double S::*member) {
                   check(value.is_number(), where, " must be a number; it is ", shown(value));
                   values.*member = value.get<double>();
                 },
                 [&](bool S::*member) {
                   check(value.is_boolean(), where, " must be true or false; it is ", shown(value));
                   values.*member = value.get<bool>();
                 },
                 [&](std::string S::*member) {
                   check(value.is_string(), where, " must be a text; it is ", shown(value));
                   const auto& text = value.get_ref<const std::string&>();
                   check(well_formed_prefix(text) == text.size(), where, " must be UTF-8; it is ",
                         shown(value));
                   values.*member = text;
                 },
                 [&](std::vector<std::string> S::*member) {
                   const bool texts = std::all_of(value.begin(), value.end(),
                                                  [](const Json& v) { return v.is_string(); });
                   check(value.is_array() && texts, where, " must be a list of texts; it is ",
                         shown(value));
                   values.*member = value.get<std::vector<std::string>>();
                 },
                 [&](std::vector<double> S::*member) {
                   const bool numbers = std::all_of(value.begin(), value.end(),
                                                    [](const Json& v) { return v.is_number(); });
                   check(value.is_array() && numbers, where, " must be a list of numbers; it is ",
                         shown(value));
                   values.*member = value.get<std::vector<double>>();
                 },
                 [&](const EnumMember<S>& member) {
                   const std::vector<std::string> names = strings(member.names);
                   check(value.is_string(), where, " must be a text; it is ", shown(value),
                         did_you_mean("", names));
                   const auto& name = value.get_ref<const std::string&>();
                   for (size_t i = 0; i < names.size(); ++i) {
                     if (names[i] == name) return member.set(values, static_cast<int>(i));
                   }
                   fail(where, " = \"", name, "\" is not known", did_you_mean(name, names));
                 },
             },
             field.member);
}

template <class S>
Json field_value(const S& values, const Field<S>& field) {
  return std::visit(Overload{
                        [&](const EnumMember<S>& m) {
                          return Json(std::string(m.names[static_cast<size_t>(m.get(values))]));
                        },
                        [&](auto member) { return Json(values.*member); },
                    },
                    field.member);
}

template <class S>
const Field<S>& find_field(std::span<const Field<S>> fields, std::string_view name,
                           const std::string& section) {
  for (const auto& field : fields) {
    if (field.name == name) return field;
  }
  fail(section, ": there is no field \"", name, "\"", did_you_mean(name, field_names(fields)));
}

}  // namespace tally::detail

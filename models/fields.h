#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace tally {

/// A member of struct S whose type is an enumeration, seen as a number and a list of names.
template <class S>
struct EnumMember {
  std::span<const std::string_view> names;
  int (*get)(const S&);
  void (*set)(S&, int);
};

/// One field of a configuration: the row of the table that parsing, printing, checking,
/// did-you-mean and the documentation all read.
template <class S>
struct Field {
  using Member =
      std::variant<int64_t S::*, double S::*, bool S::*, std::string S::*,
                   std::vector<std::string> S::*, std::vector<double> S::*, EnumMember<S>>;

  const char* name;
  Member member;
  double min, max;  // of a number, both inclusive
  const char* doc;
};

/// Whether a field has the same value in both.
template <class S>
bool same_value(const Field<S>& field, const S& a, const S& b) {
  return std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, EnumMember<S>>)
          return member.get(a) == member.get(b);
        else
          return a.*member == b.*member;
      },
      field.member);
}

namespace detail {
template <class T>
struct MemberOf;
template <class S, class E>
struct MemberOf<E S::*> {
  using Struct = S;
  using Enum = E;
};
}  // namespace detail

/// The row of an enumeration: `enum_field<&ModelConfig::norm>("norm", "...")`. Its names come from
/// `enum_names(E)`, in the order of the enumerators.
template <auto Pointer>
auto enum_field(const char* name, const char* doc) {
  using S = typename detail::MemberOf<decltype(Pointer)>::Struct;
  using E = typename detail::MemberOf<decltype(Pointer)>::Enum;
  return Field<S>{
      name,
      EnumMember<S>{enum_names(E{}), [](const S& s) { return static_cast<int>(s.*Pointer); },
                    [](S& s, int v) { s.*Pointer = static_cast<E>(v); }},
      0, 0, doc};
}

}  // namespace tally

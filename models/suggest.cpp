#include "models/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tally {
namespace {

/// Case and separators are never what tells two names apart: "llama3" is part of "llama-3-8b".
std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const bool separator = c == '_' || c == '-' || c == ' ';
    if (!separator) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<size_t> before(columns), last(columns), now(columns);
  for (size_t j = 0; j < columns; ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j < columns; ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string closest(std::string_view word, std::span<const std::string> choices) {
  if (word.empty() || word.size() > 64) return "";
  const std::string wanted = folded(word);
  std::string best;
  size_t best_distance = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& choice : choices) {
    const size_t distance = edit_distance(wanted, folded(choice));
    if (distance < best_distance) best = choice, best_distance = distance;
  }
  if (best_distance <= 1) return best;
  // "llama3" for "llama-3-8b", "base" for "rope_base": a part of a name, not a slip of the finger.
  std::string whole;
  for (const std::string& choice : choices) {
    const bool part = wanted.size() >= 3 && folded(choice).find(wanted) != std::string::npos;
    if (part && (whole.empty() || choice.size() < whole.size())) whole = choice;
  }
  return whole.empty() ? best : whole;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> choices) {
  const std::string best = closest(word, choices);
  if (!best.empty()) return "; did you mean \"" + best + "\"?";
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  return "; choose one of " + list;
}

}  // namespace tally

#pragma once
#include <string>

#include "core/error.h"

namespace tally::test {

/// The message of the Error that `act` throws; "accepted" if it throws none.
template <class F>
std::string message_of(const F& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace tally::test

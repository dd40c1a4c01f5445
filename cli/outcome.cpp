#include "cli/outcome.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>

#include "core/error.h"
#include "data/json.h"

namespace tally::cli {
namespace {

int say(const std::string& what) {
  std::fprintf(stderr, "tally: %s\n", what.c_str());
  return 1;
}

// "[json.exception.type_error.302] type must be string": without what only a programmer reads.
std::string plain(const nlohmann::json::exception& e) {
  const std::string what = e.what();
  const size_t end = what.find("] ");
  return end == std::string::npos ? what : what.substr(end + 2);
}

int run(const std::function<int()>& verb) {
  try {
    return verb();
  } catch (const nlohmann::json::exception& e) {
    return say("a JSON file does not have the form that is needed: " + plain(e) +
               "; was it changed by hand, or written by another program?");
  } catch (const std::filesystem::filesystem_error& e) {
    return say(e.path1().string() + ": cannot be used as a file or folder: " + e.code().message() +
               "; give another path");
  } catch (const std::bad_alloc&) {
    return say(
        "there is not enough memory; use a smaller --batch, --seq or model (`tally account` says "
        "what a step takes)");
  } catch (const std::length_error&) {
    return say("a size is beyond what memory can hold; use a smaller --batch, --seq or model");
  } catch (const std::exception& e) {
    return say(e.what());
  }
}

}  // namespace

int outcome_of(const std::function<int()>& verb) {
  const int code = run(verb);
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!lost) return code;
  const std::string reason = errno ? std::string(": ") + std::strerror(errno) : "";
  say("stdout: not all of the output could be written" + reason +
      "; what is there is incomplete: give it a place with room and run again");
  return code ? code : 1;
}

}  // namespace tally::cli

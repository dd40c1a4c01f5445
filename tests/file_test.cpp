#include "data/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.h"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using namespace tally;
namespace fs = std::filesystem;

namespace {

/// A folder that exists for one test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tally-file-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), {}));
  }

 private:
  fs::path path_;
};

/// What `action` returned in a process of its own.
int in_child(const std::function<int()>& action) {
  const pid_t child = fork();
  if (child == 0) _exit(action());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("file: what was written is read and mapped", "[file]") {
  const Folder folder;
  const std::string path = folder / "a", big(3 << 20, 'x');
  write_file_atomic(path, "first");
  CHECK(read_file(path) == "first");
  write_file_atomic(path, [&](const Sink& sink) {
    sink("ab", 2);
    sink(big.data(), big.size());
    sink("", 0);
    sink("c", 1);
  });
  CHECK(read_file(path) == "ab" + big + "c");
  const MappedFile map(path);
  CHECK(map.bytes().size() == big.size() + 3);
  CHECK(map.bytes().back() == std::byte{'c'});
  CHECK(folder.files() == 1);
}

TEST_CASE("file: an empty file gives no bytes", "[file]") {
  const Folder folder;
  write_file_atomic(folder / "e", "");
  CHECK(read_file(folder / "e").empty());
  CHECK(MappedFile(folder / "e").bytes().empty());
}

TEST_CASE("file: a map can be moved", "[file]") {
  const Folder folder;
  write_file_atomic(folder / "a", "abc");
  MappedFile first(folder / "a");
  MappedFile second(std::move(first));
  CHECK(second.bytes().size() == 3);
  MappedFile third(folder / "a");
  third = std::move(second);
  CHECK(third.bytes()[1] == std::byte{'b'});
}

TEST_CASE("file: refuses what is not a regular file, without hanging on a pipe", "[file][error]") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(refusal([&] { read_file(folder / "none"); }), Contains("none: cannot open the file"));
  CHECK_THAT(refusal([&] { read_file(folder / "."); }), Contains("is a folder"));
  CHECK_THAT(refusal([&] { read_file(folder / "pipe"); }), Contains("device or a pipe"));
  CHECK_THAT(refusal([&] { MappedFile(folder / "pipe"); }), Contains("device or a pipe"));
  CHECK_THAT(refusal([] { read_file("/dev/zero"); }), Contains("device or a pipe"));
  CHECK_THAT(refusal([&] { write_file_atomic(folder / "pipe", "x"); }), Contains("regular file"));
  CHECK_THAT(refusal([&] { write_file_atomic(folder / ".", "x"); }), Contains("cannot write"));
  CHECK_THAT(refusal([] { write_file_atomic("", "x"); }), Contains("cannot write"));
  CHECK_THAT(refusal([&] { write_file_atomic(folder / "no/f", "x"); }), Contains("No such file"));
}

TEST_CASE("file: refuses a file over the limit before reading it", "[file][error]") {
  const Folder folder;
  write_file_atomic(folder / "a", "12345");
  CHECK(read_file(folder / "a", 5) == "12345");
  CHECK_THAT(refusal([&] { read_file(folder / "a", 4); }), Contains("5 bytes; at most 4"));
}

TEST_CASE("file: a writer that throws leaves the old file and no temporary", "[file][error]") {
  const Folder folder;
  write_file_atomic(folder / "a", "old");
  CHECK_THROWS_WITH(write_file_atomic(folder / "a",
                                      [](const Sink& sink) {
                                        sink("new", 3);
                                        fail("stopped");
                                      }),
                    "stopped");
  CHECK(read_file(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("file: a disk that takes no more leaves the old file and no temporary", "[file][error]") {
  const Folder folder;
  write_file_atomic(folder / "a", "old");
  const std::string big(4 << 20, 'x');
  const int result = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};  // the first write is cut short, the next one fails
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    return refusal([&] { write_file_atomic(folder / "a", big); }).find("cannot write") ==
                   std::string::npos
               ? 1
               : 0;
  });
  CHECK(result == 0);
  CHECK(read_file(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("file: a link is followed, its target replaced", "[file]") {
  const Folder folder;
  write_file_atomic(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file_atomic(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "target") == "new");
}

TEST_CASE("file: the next save removes what dead writers left, nothing else", "[file][F45]") {
  const Folder folder;
  const std::string stray = folder / ".a.tmp-0123456789abcdef";
  const std::string other = folder / ".b.tmp-0123456789abcdef", note = folder / ".a.tmp-note";
  for (const std::string& path : {stray, other, note}) std::ofstream(path) << "x";
  write_file_atomic(folder / "a", [&](const Sink& sink) {
    // A second writer of the same file must not take the first one's temporary for a stray.
    write_file_atomic(folder / "a", "inner");
    sink("outer", 5);
  });
  CHECK(read_file(folder / "a") == "outer");
  CHECK_FALSE(fs::exists(stray));
  CHECK(fs::exists(other));
  CHECK(fs::exists(note));
}

TEST_CASE("file: kill -9 while saving leaves the old or the new file whole", "[file][F45]") {
  const Folder folder;
  const std::string path = folder / "a";
  constexpr size_t kBytes = 1 << 20;
  write_file_atomic(path, std::string(kBytes, 'a'));
  unsigned wait = 1;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        write_file_atomic(path, std::string(kBytes, c));
      }
    }
    wait = wait * 1103515245u + 12345u;
    usleep(500 + (wait >> 16) % 6000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string bytes = read_file(path);
    REQUIRE(bytes.size() == kBytes);
    REQUIRE(bytes.find_first_not_of(bytes[0]) == std::string::npos);
    REQUIRE(folder.files() <= 2);
  }
  write_file_atomic(path, "done");
  CHECK(folder.files() == 1);
}

#include "data/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "core/error.h"

namespace tally {
namespace fs = std::filesystem;

namespace detail {  // named, since a class with linkage has one

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int get() const { return fd_; }
  /// 0, or the errno of a close that lost data.
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

}  // namespace detail

namespace {

using detail::Descriptor;

[[noreturn]] void fail_errno(const std::string& path, const char* action, int error) {
  fail(path, ": cannot ", action, ": ", std::strerror(error));
}

/// Opens a regular file for reading. O_NONBLOCK: opening a pipe must not hang before it is refused.
Descriptor open_regular(const std::string& path, size_t* size) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno(path, "open the file", errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) fail_errno(path, "read the file's size", errno);
  check(!S_ISDIR(info.st_mode), path, ": this is a folder; a file is needed");
  check(S_ISREG(info.st_mode), path, ": this is a device or a pipe; a regular file is needed");
  *size = static_cast<size_t>(info.st_size);
  return file;
}

void write_all(int fd, const char* data, size_t bytes, const std::string& path) {
  while (bytes > 0) {
    // Linux writes at most 2 GiB a call, and less when the disk fills: both return a short count.
    const ssize_t n = ::write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path, "write; the old file, if any, is untouched", errno);
    if (n == 0) fail_errno(path, "write; the old file, if any, is untouched", ENOSPC);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

/// Temporaries are called .NAME.tmp-HHHHHHHHHHHHHHHH, so that a later writer knows its own.
constexpr size_t kTagDigits = 16;

std::string temporary_prefix(const fs::path& target) {
  return "." + target.filename().string() + ".tmp-";
}

bool is_temporary_of(const std::string& name, const std::string& prefix) {
  return name.size() == prefix.size() + kTagDigits && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

/// A living writer holds a lock on its temporary; one whose lock is free was left by a dead one.
void remove_stray_temporaries(const fs::path& folder, const std::string& prefix) {
  std::error_code error;
  fs::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const fs::path path = entry->path();
    if (!is_temporary_of(path.filename().string(), prefix)) continue;
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  }
}

std::string random_tag() {
  std::random_device device;
  const uint64_t bits = (uint64_t{device()} << 32) | device();
  std::string tag(kTagDigits, '0');
  for (size_t i = 0; i < kTagDigits; ++i) tag[i] = "0123456789abcdef"[(bits >> (4 * i)) & 15];
  return tag;
}

/// The file that a write to `path` replaces: links are followed, anything but a file is refused.
fs::path resolve_target(const std::string& path) {
  std::error_code error;
  fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : fs::path(path);
  check(!error || error == std::errc::no_such_file_or_directory, path,
        ": cannot follow the link: ", error.message());
  check(target.has_filename() && target.filename() != "." && target.filename() != "..", path,
        ": cannot write: a file name is needed");
  const fs::file_status status = fs::status(target, error);
  check(status.type() == fs::file_type::not_found || fs::is_regular_file(status), path,
        ": cannot write: this is not a regular file");
  return target;
}

}  // namespace

std::string read_file(const std::string& path, size_t max_bytes) {
  size_t size = 0;
  Descriptor file = open_regular(path, &size);
  check(size <= max_bytes, path, ": the file has ", size, " bytes; at most ", max_bytes,
        " are allowed here");
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path, "read", errno);
    if (n == 0) fail(path, ": the file shrank while it was read");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  size_t size = 0;
  Descriptor file = open_regular(path, &size);
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail_errno(path, "map the file into memory", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : path_(std::move(o.path_)), bytes_(std::exchange(o.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(path_, o.path_);
  std::swap(bytes_, o.bytes_);
  return *this;
}

void will_read(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(mapped.data());
  const uintptr_t from = at - at % page;
  ::madvise(reinterpret_cast<void*>(from), at + mapped.size() - from, MADV_WILLNEED);
}

void remove_stray_temporaries(const std::string& path) {
  const fs::path target = path;
  remove_stray_temporaries(target.has_parent_path() ? target.parent_path() : fs::path("."),
                           temporary_prefix(target));
}

/// The temporary file, and what it is to become.
struct AtomicFile::State {
  explicit State(const std::string& name) : path(name), target(resolve_target(name)) {
    folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    const std::string prefix = temporary_prefix(target);
    remove_stray_temporaries(folder, prefix);
    // A cleaner may take a temporary between its creation and its lock: then make another one.
    for (struct stat info{}; info.st_nlink == 0;) {
      temporary = folder / (prefix + random_tag());
      file = Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (file.get() < 0) fail_errno(path, "create a temporary file beside it", errno);
      created = true;
      // Where the file system has no locks the temporary is merely never mistaken for a live one.
      ::flock(file.get(), LOCK_EX);
      if (::fstat(file.get(), &info) != 0) info.st_nlink = 1;
    }
  }
  ~State() {
    if (created) ::unlink(temporary.c_str());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void flush() {
    write_all(file.get(), buffer.data(), buffer.size(), path);
    buffer.clear();
  }

  const std::string path;
  fs::path target, folder, temporary;
  Descriptor file;
  bool created = false;
  std::string buffer;
};

AtomicFile::AtomicFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
AtomicFile::~AtomicFile() = default;

void AtomicFile::append(const void* data, size_t bytes) {
  constexpr size_t kBufferBytes = size_t{1} << 18;
  State& s = *state_;
  const auto* from = static_cast<const char*>(data);
  if (s.buffer.size() + bytes >= kBufferBytes) s.flush();
  if (bytes < kBufferBytes)
    s.buffer.append(from, bytes);
  else
    write_all(s.file.get(), from, bytes, s.path);
}

void AtomicFile::overwrite_start(std::string_view bytes) {
  State& s = *state_;
  s.flush();
  if (::lseek(s.file.get(), 0, SEEK_SET) != 0) fail_errno(s.path, "go to the file's start", errno);
  write_all(s.file.get(), bytes.data(), bytes.size(), s.path);
  if (::lseek(s.file.get(), 0, SEEK_END) < 0) fail_errno(s.path, "go to the file's end", errno);
}

void AtomicFile::flush() {
  State& s = *state_;
  s.flush();
  if (::fsync(s.file.get()) != 0) fail_errno(s.path, "flush to disk; the old file is kept", errno);
}

void AtomicFile::commit() {
  flush();
  State& s = *state_;
  // Renamed while still locked: a cleaner never sees it free under its temporary name.
  if (::rename(s.temporary.c_str(), s.target.c_str()) != 0) {
    fail_errno(s.path, "put the new file in place; the old one is kept", errno);
  }
  s.created = false;
  if (const int error = s.file.close()) fail_errno(s.path, "close", error);
  Descriptor folder(::open(s.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot flush a folder (EINVAL): the rename is then as durable as they go.
  if (folder.get() >= 0 && ::fsync(folder.get()) != 0 && errno != EINVAL) {
    fail_errno(s.path, "flush its folder to disk", errno);
  }
}

FolderLock::FolderLock(const std::string& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) fail_errno(folder, "open the folder", errno);
  // Where the file system has no locks (ENOLCK, EOPNOTSUPP) nobody can be kept out.
  if (::flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(folder_);
  fail(folder,
       ": another program is writing into this folder; wait for it, or name another folder");
}

FolderLock::~FolderLock() { ::close(folder_); }

void write_file_atomic(const std::string& path, const std::function<void(const Sink&)>& write) {
  AtomicFile file(path);
  write([&](const void* data, size_t bytes) { file.append(data, bytes); });
  file.commit();
}

void write_file_atomic(const std::string& path, std::string_view bytes) {
  write_file_atomic(path, [&](const Sink& sink) { sink(bytes.data(), bytes.size()); });
}

}  // namespace tally

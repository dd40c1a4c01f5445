#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tally {

/// The whole file as bytes. Throws Error naming the path and the reason; refuses folders, devices
/// and files over `max_bytes`.
std::string read_file(const std::string& path, size_t max_bytes = size_t{1} << 40);

/// A read-only memory map of a file; an empty file gives an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

/// Asks the system to bring mapped bytes into memory while we go on. A hint: nothing else changes.
void will_read(std::span<const std::byte> mapped);

/// Writes a file so that a crash or a full disk at any moment leaves the old one or the new one:
/// a temporary file in the same folder, and at commit() fsync, rename, fsync of the folder. What was
/// not committed is removed. Every function throws Error naming the path and the reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  void append(const void* data, size_t bytes);
  /// Replaces the first bytes: of a header that was written before its values were known.
  void overwrite_start(std::string_view bytes);
  /// Brings what was appended to the disk: what may fail has failed before commit() renames.
  void flush();
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Keeps a folder to one writer while it lives: Error where another one, of any process, has it. Ends
/// with the process, however that ends, and leaves nothing behind.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

/// An AtomicFile in one call. `write` gets a sink that takes any number of pieces.
using Sink = std::function<void(const void* data, size_t bytes)>;
void write_file_atomic(const std::string& path, const std::function<void(const Sink&)>& write);
void write_file_atomic(const std::string& path, std::string_view bytes);

/// Removes the temporaries that writers of `path` left when they were killed; the next write of it
/// does so too.
void remove_stray_temporaries(const std::string& path);

}  // namespace tally

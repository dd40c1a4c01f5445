#pragma once
#include <string>
#include <vector>

namespace tally {

/// Files of one kind, in the order in which they are read.
struct DataFiles {
  bool tokens = false;             // else texts
  std::vector<std::string> train;  // all of them, where nothing is set apart
  std::vector<std::string> val;    // what a folder of token files sets apart for validation
};

/// What paths of data stand for:
///   a folder    its train.npy (and val.npy); else its .npy and .bin files, those whose names begin
///               with "val" for validation; else its .txt files
///   a pattern   with * ? [ in it, where no file has that name: all files that match
///   a file      .npy, .bin: tokens; any other: text
/// The files of a folder or a pattern come in the order of the bytes of their names, whatever the
/// language of the machine; the paths in the order given. Throws Error for a folder or a pattern
/// without files, and for token files beside texts.
DataFiles find_data_files(const std::vector<std::string>& paths);

}  // namespace tally

#pragma once
// Which of the mutants of a file acts: TALLY_MUTANT, 0 for none. Included before everything else.
#include <cstdlib>

inline const int tally_mutant =
    std::getenv("TALLY_MUTANT") ? std::atoi(std::getenv("TALLY_MUTANT")) : 0;

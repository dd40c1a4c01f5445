// Catch2's main, compiled once for all test programs: it costs more to build than most of them.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

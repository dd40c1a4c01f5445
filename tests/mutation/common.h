#pragma once
// What every proof program of a mutant includes, apart from the mutated op: compiled once.
#include "autograd/proof/proof.h"
#include "backends/register_all.h"

// Replaces CUDA's header of the same name.
#pragma once
#include "halves.h"

// In the place of CUDA's header of that name.
#pragma once
#include "halves.h"

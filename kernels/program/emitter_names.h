// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names that the emitters of values (device/program/program.cuh) and of spans (device/program/span.cuh) share.

#include <string_view>

#include "kernels/program/program.h"

namespace vitrine::kernels {

/// "bool", "int", "long long", "float".
std::string_view emittedType(ProgramType type);

/// The device function of sums, products, floor division, minimum, maximum and shifts; empty for other operations.
std::string_view emittedFunction(ProgramOp op);

} // namespace vitrine::kernels

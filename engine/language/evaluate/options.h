// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the caller of an evaluation gives beside the texts, and what it may move afterwards.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "engine/language/values/captured_tensor.h"

namespace vitrine::engine {

/// A number that a slider can move: of a global or of a factory's argument, in the order in which the text gave them.
struct SlidableNumber {
    std::string name;
    double value = 0; ///< what the text says
    bool whole = true;
};

struct ProgramOptions {
    /// Global names that the text reads without defining them: sizes ("B", "H", "S") ...
    std::map<std::string, std::int64_t, std::less<>> integers;
    /// ... and tensors. These become captures, so that new contents do not change the program.
    CapturedTensors tensors;
    /// Numbers given here by name replace module constants or factory arguments of that name and become Scalars: a
    /// slider moves them without a new program.
    std::map<std::string, double, std::less<>> sliders;
};

} // namespace vitrine::engine

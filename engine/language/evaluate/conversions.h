// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What Python itself and the builtins need of a value: its truth, an integer, a number, a string, a dtype, a slice.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/language/evaluate/evaluation.h"
#include "kernels/core/dtype.h"

namespace vitrine::engine {

/// The elements that a slice takes: start, start + step, ... (count of them).
struct SliceRange {
    std::int64_t start, step, count;
};

/// Each throws BadInput that begins with `what` when the value is something else or depends on the program's inputs.
class PyConversions {
public:
    explicit PyConversions(Evaluation& evaluation) : evaluation_(evaluation) {}

    bool truth(PyValue value);
    std::int64_t integer(PyValue value, std::string_view what);
    double real(PyValue value, std::string_view what);
    std::string text(PyValue value, std::string_view what);
    kernels::DType dtype(PyValue value);
    PyValue concrete(PyValue value); ///< a slider's number, with a note
    /// Python's slice.indices() of a sequence of `extent` elements.
    SliceRange slice(const PySlice& slice, std::int64_t extent);

private:
    Evaluation& evaluation_;
};

} // namespace vitrine::engine

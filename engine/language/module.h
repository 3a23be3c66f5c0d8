// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From the Python that people write for FlexAttention to programs. A module's whole grammar is parsed; only what the
// chosen expression reaches is checked and evaluated, what could not be understood elsewhere becomes a note. Evaluation
// is partial: module-level code, factories, constant loops and constructors of tensors run here over constants; what
// depends on score, b, h, q_idx, kv_idx or a captured tensor becomes nodes of a kernels::Program. Nothing is executed
// by Python. docs/attention-language.md lists what is supported.
//
// Errors are PyError: "FILE:LINE:COLUMN: what, and what to do" on one line; excerpt() gives the source line and a
// caret.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/language/evaluate/options.h"
#include "engine/language/python/source.h"
#include "engine/language/values/captured_tensor.h"
#include "kernels/program/program.h"

namespace vitrine::engine {

/// Reads a file of at most kMaxSourceBytes; throws BadInput.
PyFile readPyFile(const std::string& path);

/// What a module offers to a picker: functions of four (mask) or five (score) parameters, and factories of them.
struct ProgramOffer {
    enum class Kind { Mask, Score, Factory };
    Kind kind = Kind::Mask;
    std::string name;
    std::string documentation; ///< first line of its docstring, or of the comment above it
    struct Parameter {
        std::string name, annotation;
        std::string defaultText; ///< "" if it has none
    };
    std::vector<Parameter> parameters; ///< of a factory
    PyPlace place;
};

/// The tensors of a file that programs may capture, by their names. Throws BadInput.
CapturedTensors readCapturedTensors(const std::string& safetensorsPath);

/// A chosen program, and what it captures.
struct ChosenProgram {
    kernels::Program program;
    std::vector<CapturedTensor> captures; ///< in the order of program.captures; data may be null
    std::vector<std::string> notes;       ///< what was skipped, with its place
    std::vector<SlidableNumber> numbers;  ///< what ProgramOptions::sliders may move of what was reached
    /// Pointers into `captures`. Throws BadInput that names a capture without contents.
    kernels::CaptureBinding binding() const;
};

/// Parsed texts of one or several files that share a scope (later ones win), and the catalogue, which is searched after
/// them.
class PyModule {
public:
    /// Throws PyError on a syntax error.
    static PyModule parse(std::span<const PyFile> files);
    ~PyModule();
    PyModule(PyModule&&) noexcept;
    PyModule& operator=(PyModule&&) noexcept;
    PyModule(const PyModule&) = delete; // trees point into the texts
    PyModule& operator=(const PyModule&) = delete;

    std::vector<ProgramOffer> offers() const;

    /// `expression` in the module's scope: a name, a call of a factory ("generate_natten(16, 16, 5, 5)"), or any
    /// expression that gives a function of (b, h, q_idx, kv_idx). Throws PyError.
    ChosenProgram mask(std::string_view expression, const ProgramOptions& options = {}) const;
    /// A function of (score, b, h, q_idx, kv_idx).
    ChosenProgram score(std::string_view expression, const ProgramOptions& options = {}) const;

private:
    struct State;
    PyModule();
    std::unique_ptr<State> state_;
};

} // namespace vitrine::engine

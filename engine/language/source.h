// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From the Python that people write for FlexAttention to programs. A module's whole grammar is parsed; only what the chosen
// expression reaches is checked and evaluated, what could not be understood elsewhere becomes a note. Evaluation is partial:
// module-level code, factories, constant loops and constructors of tensors run here over constants; what depends on score, b,
// h, q_idx, kv_idx or a captured tensor becomes nodes of a kernels::Program. Nothing is executed by Python.
// docs/attention-language.md lists what is supported.
//
// Errors are ModError: "FILE:LINE:COLUMN: what, and what to do" on one line; excerpt() gives the source line and a caret.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernels/program/program.h"

namespace vitrine::engine {

inline constexpr std::size_t kMaxModSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxModNesting = 64;                 ///< of expressions, blocks and calls
inline constexpr std::int64_t kMaxModSteps = 2'000'000;   ///< statements and expressions evaluated
inline constexpr std::int64_t kMaxModConstants = 1 << 24; ///< elements of all tensors that constructors make

struct ModPlace {
    std::string file;
    int line = 0;                   ///< from 1
    int column = 0;                 ///< from 1, in characters
    std::size_t begin = 0, end = 0; ///< bytes of the text
};

class ModError : public base::BadInput {
public:
    ModError(ModPlace place, std::string what, std::string excerpt);
    const ModPlace& place() const noexcept { return place_; }
    const std::string& description() const noexcept { return what_; } ///< without file, place and caret
    const std::string& excerpt() const noexcept { return excerpt_; }  ///< the source line, and a caret under it

private:
    ModPlace place_;
    std::string what_, excerpt_;
};

/// A text with its name: a file, or the editor's ("mask A").
struct ModFile {
    std::string name;
    std::string text;
};
/// Reads a file of at most kMaxModSourceBytes; throws BadInput.
ModFile readModFile(const std::string& path);

/// What a module offers to a picker: functions of four (mask) or five (score) parameters, and factories of them.
struct ModOffer {
    enum class Kind { Mask, Score, Factory };
    Kind kind = Kind::Mask;
    std::string name;
    std::string documentation; ///< first line of its docstring, or of the comment above it
    struct Parameter {
        std::string name, annotation;
        std::string defaultText; ///< "" if it has none
    };
    std::vector<Parameter> parameters; ///< of a factory
    ModPlace place;
};

/// A tensor that a program captures, with its contents where they are known (constructors, files).
struct CapturedTensor {
    kernels::DType dtype = kernels::DType::None;
    kernels::Shape shape;
    std::shared_ptr<const std::vector<std::byte>> data; ///< null: not known, the user binds it
    kernels::TensorView view() const;
};

/// Contents by name: of a safetensors file, of the GUI's editors, of tests.
using CapturedTensors = std::map<std::string, CapturedTensor, std::less<>>;
CapturedTensors readCapturedTensors(const std::string& safetensorsPath);

/// A number that a slider can move: of a global or of a factory's argument, in the order in which the text gave them.
struct ModNumber {
    std::string name;
    double value = 0; ///< what the text says
    bool whole = true;
};

/// A chosen program, and what it captures.
struct ModProgram {
    kernels::Program program;
    std::vector<CapturedTensor> captures; ///< in the order of program.captures; data may be null
    std::vector<std::string> notes;       ///< what was skipped, with its place
    std::vector<ModNumber> numbers;       ///< what ModOptions::sliders may move of what was reached
    /// Pointers into `captures`. Throws BadInput that names a capture without contents.
    kernels::CaptureBinding binding() const;
};

struct ModOptions {
    /// Global names that the text reads without defining them: sizes ("B", "H", "S") ...
    std::map<std::string, std::int64_t, std::less<>> integers;
    /// ... and tensors. These become captures, so that new contents do not change the program.
    CapturedTensors tensors;
    /// Numbers given here by name replace module constants or factory arguments of that name and become Scalars: a slider
    /// moves them without a new program.
    std::map<std::string, double, std::less<>> sliders;
};

/// Parsed texts of one or several files that share a scope (later ones win), and the catalogue behind them.
class ModModule {
public:
    /// Throws ModError on a syntax error.
    static ModModule parse(std::span<const ModFile> files);
    ~ModModule();
    ModModule(ModModule&&) noexcept;
    ModModule& operator=(ModModule&&) noexcept;
    ModModule(const ModModule&) = delete; // trees point into the texts
    ModModule& operator=(const ModModule&) = delete;

    std::vector<ModOffer> offers() const;

    /// `expression` in the module's scope: a name, a call of a factory ("generate_natten(16, 16, 5, 5)"), or any expression
    /// that gives a function of (b, h, q_idx, kv_idx). Throws ModError.
    ModProgram mask(std::string_view expression, const ModOptions& options = {}) const;
    /// A function of (score, b, h, q_idx, kv_idx).
    ModProgram score(std::string_view expression, const ModOptions& options = {}) const;

private:
    struct State;
    ModModule();
    std::unique_ptr<State> state_;
};

/// For the editor's colours: tokens of a text that need not be correct.
struct ModToken {
    enum class Kind { Keyword, Name, Builtin, Number, String, Comment, Operator, Error };
    Kind kind = Kind::Name;
    std::size_t begin = 0, end = 0;
};
std::vector<ModToken> modTokens(std::string_view text);

} // namespace vitrine::engine

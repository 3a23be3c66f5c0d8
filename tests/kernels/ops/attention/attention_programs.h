// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Programs beyond what models use, over ragged batches: made as engine/attention would, and said again in plain C++.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/context/cpu_context.h"
#include "kernels/program/attention_program.h"
#include "kernels/program/interpreter.h"
#include "tests/kernels/ops/common/op_testing.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels::testing {

/// What one (sequence, head, query, key) means.
struct AttentionElement {
    std::int64_t b = 0, h = 0, q = 0, k = 0;
};

class AttentionPrograms {
public:
    static constexpr std::string_view kNames[] = {"alibi",   "soft_cap", "prefix",    "document",       "dilated",
                                                  "global",  "by_head",  "even_rows", "shifted_window", "bias_table",
                                                  "blocked", "two_ways", "everything"};
    /// Masks that are no intervals and leave out most of a long context, or see stretches of it whole.
    static constexpr std::string_view kSparse[] = {"long_document", "prefix_document", "strided", "global_far",
                                                   "by_head_document"};

    /// A fresh mask over integers: "random" and a seed.
    static std::string random(std::mt19937& seeds) { return "random " + std::to_string(seeds()); }

    /// Captures for `batch` sequences of up to `longest` tokens and `heads` heads.
    AttentionPrograms(std::string_view name, std::int64_t batch, std::int64_t heads, std::int64_t longest)
        : name_(name), longest_(longest) {
        for (std::int64_t h = 0; h < heads; ++h) {
            slopes_.push_back(-0.25 / static_cast<double>(h + 1));
            windows_.push_back(static_cast<std::int32_t>(3 + 11 * h));
        }
        for (std::int64_t b = 0; b < batch; ++b) {
            prefixes_.push_back(static_cast<std::int32_t>(7 + 13 * b));
            for (std::int64_t p = 0; p < longest; ++p) {
                documents_.push_back(static_cast<std::int32_t>(p / 9 + p / (20 + b)));
                longDocuments_.push_back(static_cast<std::int32_t>(p / (270 + 31 * b) * 7 % 11)); // not in order
            }
        }
        slopeTensor_ = TestTensor(DType::F32, Shape{heads});
        slopeTensor_.fill(slopes_);
        windowTensor_ = ints(Shape{heads}, windows_);
        prefixTensor_ = ints(Shape{batch}, prefixes_);
        documentTensor_ = ints(Shape{batch, longest}, documents_);
        longDocumentTensor_ = ints(Shape{batch, longest}, longDocuments_);
        if (name_.starts_with("random ")) {
            makeRandom(static_cast<unsigned>(std::stoul(name_.substr(7))), heads);
        } else {
            make();
        }
    }

    template <class At> BoundProgram mask(At&& at) const {
        return mask_ ? mask_->bound(bindingOf(mask_->program, at)) : BoundProgram{};
    }
    template <class At> BoundProgram score(At&& at) const {
        return score_ ? score_->bound(bindingOf(score_->program, at)) : BoundProgram{};
    }
    const KnownProgram* maskProgram() const { return mask_ ? &*mask_ : nullptr; }

    bool allowed(const AttentionElement& e) const {
        if (!randomTensors_.empty()) {
            const CaptureBinding binding =
                bindingOf(mask_->program, [](const TestTensor& tensor) { return tensor.view(); });
            Interpreter<double> interpreter(mask_->program, binding);
            interpreter.run({e.b, e.h, e.q}, e.k, 1, nullptr);
            return interpreter.booleans()[0] != 0;
        }
        const bool causal = e.k <= e.q;
        const auto at = [](const auto& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
        const auto document = [&](std::int64_t p) { return at(documents_, e.b * longest_ + p); };
        if (name_ == "prefix") {
            return causal || e.k < at(prefixes_, e.b);
        }
        if (name_ == "document") {
            return causal && document(e.q) == document(e.k);
        }
        if (name_ == "dilated") {
            return causal && e.q - e.k < 60 && (e.q - e.k) % 3 == 0;
        }
        if (name_ == "global") {
            return causal && (e.k < 4 || e.q - e.k < 16);
        }
        if (name_ == "by_head" || name_ == "two_ways") {
            return causal && e.q - e.k < at(windows_, e.h) && (name_ == "by_head" || document(e.q) == document(e.k));
        }
        if (name_ == "even_rows") {
            return causal && e.q % 2 == 0;
        }
        const auto longDocument = [&](std::int64_t p) { return at(longDocuments_, e.b * longest_ + p); };
        if (name_ == "long_document" || name_ == "prefix_document") {
            return causal &&
                   (longDocument(e.q) == longDocument(e.k) || (name_ == "prefix_document" && e.k < at(prefixes_, e.b)));
        }
        if (name_ == "strided") {
            return causal && (e.q - e.k < 40 || e.k / 100 % 4 == 1);
        }
        if (name_ == "global_far") {
            return causal && (e.k < 70 || e.q - e.k < 150);
        }
        if (name_ == "by_head_document") {
            return causal && e.q / (20 * at(windows_, e.h)) == e.k / (20 * at(windows_, e.h));
        }
        if (name_ == "shifted_window") {
            return e.k <= e.q - 5 && e.q - e.k <= 25;
        }
        return name_ == "everything" || causal;
    }
    double scoreOf(double score, const AttentionElement& e) const {
        const double slope = slopes_[static_cast<std::size_t>(e.h)];
        if (name_ == "alibi" || name_ == "two_ways") {
            return score + slope * static_cast<double>(e.k - e.q);
        }
        if (name_ == "soft_cap") {
            return 1.5 * std::tanh(score / 1.5);
        }
        if (name_ == "bias_table") {
            return score + slopes_[static_cast<std::size_t>((e.q - e.k) % static_cast<std::int64_t>(slopes_.size()))];
        }
        if (name_ == "blocked") {
            return e.k % 4 == 1 ? -std::numeric_limits<double>::infinity() : score;
        }
        return score;
    }

private:
    static TestTensor ints(const Shape& shape, const std::vector<std::int32_t>& numbers) {
        TestTensor tensor(DType::I32, shape);
        tensor.fillInts(numbers);
        return tensor;
    }

    void makeRandom(unsigned seed, std::int64_t heads) {
        std::mt19937 random(seed);
        RandomProgram source(random, longest_, heads);
        Program mask = source.mask();
        const auto isFloat = [](const ProgramNode& node) { return node.type == ProgramType::Float; };
        while (std::any_of(mask.nodes.begin(), mask.nodes.end(), isFloat)) { // a device rounds floats otherwise
            mask = source.mask();
        }
        const Captures contents = source.captures(mask);
        randomTensors_.emplace("", TestTensor());
        for (std::size_t i = 0; i < mask.captures.size(); ++i) {
            const TensorView& view = contents.binding.tensors[i];
            TestTensor tensor(view.dtype, view.shape);
            std::memcpy(tensor.view().data, view.data, view.bytes());
            randomTensors_.emplace(mask.captures[i].name, std::move(tensor));
        }
        mask_.emplace(std::move(mask));
    }

    void make() {
        Maker m;
        Maker s;
        const Expr causal = m.q >= m.k;
        const auto document = [&](const Expr& at) { return m.load("documents", ProgramType::Int32, {m.b, at}); };
        const auto longDocument = [&](const Expr& at) {
            return m.load("long_documents", ProgramType::Int32, {m.b, at});
        };
        const auto window = [&] { return m.load("windows", ProgramType::Int32, {m.h}); };
        const auto slope = [&](const Expr& at) { return s.load("slopes", ProgramType::Float, {at}, true); };
        Expr mask = causal;
        if (name_ == "prefix") {
            mask = causal | (m.k < m.load("prefixes", ProgramType::Int32, {m.b}));
        } else if (name_ == "document") {
            mask = (document(m.q) == document(m.k)) & causal;
        } else if (name_ == "dilated") {
            mask = causal & ((m.q - m.k) <= 59) & ((m.q - m.k) % 3 == 0);
        } else if (name_ == "global") {
            mask = causal & ((m.k <= 3) | ((m.q - m.k) <= 15));
        } else if (name_ == "by_head") {
            mask = causal & ((m.q - m.k) < window());
        } else if (name_ == "two_ways") {
            mask = causal & ((m.q - m.k) < window()) & (document(m.q) == document(m.k));
        } else if (name_ == "even_rows") {
            mask = causal & (m.q % 2 == 0);
        } else if (name_ == "long_document") {
            mask = causal & (longDocument(m.q) == longDocument(m.k));
        } else if (name_ == "prefix_document") {
            mask = causal &
                   ((longDocument(m.q) == longDocument(m.k)) | (m.k < m.load("prefixes", ProgramType::Int32, {m.b})));
        } else if (name_ == "strided") {
            mask = causal & (((m.q - m.k) <= 39) | (floorDiv(m.k, 100) % 4 == 1));
        } else if (name_ == "global_far") {
            mask = causal & ((m.k <= 69) | ((m.q - m.k) <= 149));
        } else if (name_ == "by_head_document") {
            mask = causal & (floorDiv(m.q, window() * 20) == floorDiv(m.k, window() * 20));
        } else if (name_ == "shifted_window") {
            mask = (m.k <= m.q - 5) & ((m.q - m.k) <= 25);
        }
        if (name_ != "everything") {
            mask_.emplace(m.finish(mask));
        }
        if (name_ == "alibi" || name_ == "two_ways") {
            score_.emplace(s.finish(s.score + slope(s.h) * (s.k - s.q)));
        } else if (name_ == "soft_cap") {
            score_.emplace(softCapScore(1.5));
        } else if (name_ == "bias_table") {
            const auto heads = static_cast<int>(slopes_.size());
            score_.emplace(s.finish(s.score + slope((s.q - s.k) % heads)));
        } else if (name_ == "blocked") {
            ProgramBuilder builder;
            const auto key = builder.input(ProgramOp::Key);
            const auto rest = builder.binary(ProgramOp::Mod, key, builder.constant(std::int64_t{4}));
            const auto hit = builder.binary(ProgramOp::Eq, rest, builder.constant(std::int64_t{1}));
            score_.emplace(builder.finish(builder.select(
                hit, builder.constant(-std::numeric_limits<double>::infinity()), builder.input(ProgramOp::Score))));
        }
    }

    template <class At> CaptureBinding bindingOf(const Program& program, At&& at) const {
        CaptureBinding out;
        for (const ProgramCapture& capture : program.captures) {
            if (!randomTensors_.empty()) {
                out.tensors.push_back(at(randomTensors_.at(capture.name)));
                continue;
            }
            out.tensors.push_back(capture.name == "slopes"           ? at(slopeTensor_)
                                  : capture.name == "windows"        ? at(windowTensor_)
                                  : capture.name == "documents"      ? at(documentTensor_)
                                  : capture.name == "long_documents" ? at(longDocumentTensor_)
                                                                     : at(prefixTensor_));
        }
        return out;
    }

    std::string name_;
    std::int64_t longest_;
    std::vector<double> slopes_;
    std::vector<std::int32_t> windows_, prefixes_, documents_, longDocuments_;
    TestTensor slopeTensor_, windowTensor_, prefixTensor_, documentTensor_, longDocumentTensor_;
    std::map<std::string, TestTensor> randomTensors_; ///< by name, and an empty one; of a random program
    std::optional<KnownProgram> mask_, score_;
};

} // namespace vitrine::kernels::testing

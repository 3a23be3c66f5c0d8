// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/rollouts.h"

#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/count_text.h"
#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/output_check.h"
#include "engine/rl/policy/group_advantages.h"
#include "kernels/core/dtype.h"

namespace vitrine::engine {

namespace {

using kernels::DType;

/// The tensors of a file of rollouts, checked one by one.
class RolloutFile {
public:
    explicit RolloutFile(const std::string& path) : path_(path), file_(SafetensorsFile::open(path)) {}

    Rollouts read(std::int64_t vocab);
    Rollouts readRows(std::int64_t vocab);

private:
    [[noreturn]] void fail(std::string_view tensor, std::string_view what) const {
        throw base::BadInput(fmt::format("{}: {}: {}", path_, tensor, what));
    }
    [[noreturn]] void failRow(std::string_view tensor, std::int64_t row, std::string_view what) const {
        fail(tensor, fmt::format("row {}: {}", row, what));
    }
    bool has(std::string_view tensor) const { return file_->find(tensor) != nullptr; }
    const TensorEntry& entry(std::string_view tensor) const;
    void requireShape(const TensorEntry& tensor, const std::vector<std::int64_t>& shape) const;
    template <class Number> std::vector<Number> contents(const TensorEntry& tensor) const;
    std::vector<std::int64_t> integers(std::string_view tensor, const std::vector<std::int64_t>& shape) const;
    std::vector<float> floats(std::string_view tensor, const std::vector<std::int64_t>& shape) const;
    std::vector<float> rowFloats(std::string_view tensor) const;
    std::vector<float> tokenFloats(std::string_view tensor) const;
    std::vector<std::int32_t> rowCounts(std::string_view tensor) const;
    void readShape();
    void checkLengths() const;
    void readIds(std::int64_t vocab);
    void readAdvantages();

    std::string path_;
    std::shared_ptr<const SafetensorsFile> file_;
    std::string_view contents_ = "a file of rollouts has input_ids, prompt_lengths, lengths, and advantages or rewards "
                                 "with groups"; ///< for errors
    Rollouts out_;
};

const TensorEntry& RolloutFile::entry(std::string_view tensor) const {
    const TensorEntry* found = file_->find(tensor);
    if (found == nullptr) {
        fail(tensor, fmt::format("missing; {}", contents_));
    }
    return *found;
}

void RolloutFile::requireShape(const TensorEntry& tensor, const std::vector<std::int64_t>& shape) const {
    if (tensor.shape != shape) {
        fail(tensor.name, fmt::format("has the shape ({}), and ({}) is needed beside input_ids",
                                      fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
    }
}

template <class Number> std::vector<Number> RolloutFile::contents(const TensorEntry& tensor) const {
    std::vector<Number> out(tensor.bytes / sizeof(Number));
    file_->read(tensor, 0, out.data(), tensor.bytes);
    return out;
}

std::vector<std::int64_t> RolloutFile::integers(std::string_view tensor, const std::vector<std::int64_t>& shape) const {
    const TensorEntry& found = entry(tensor);
    requireShape(found, shape);
    if (found.dtype == DType::I64) {
        return contents<std::int64_t>(found);
    }
    if (found.dtype != DType::I32) {
        fail(tensor, "must be I32 or I64");
    }
    const std::vector<std::int32_t> narrow = contents<std::int32_t>(found);
    return {narrow.begin(), narrow.end()};
}

std::vector<float> RolloutFile::floats(std::string_view tensor, const std::vector<std::int64_t>& shape) const {
    const TensorEntry& found = entry(tensor);
    requireShape(found, shape);
    if (found.dtype != DType::F32) {
        fail(tensor, "must be F32");
    }
    return contents<float>(found);
}

std::vector<float> RolloutFile::rowFloats(std::string_view tensor) const {
    std::vector<float> values = floats(tensor, {out_.rows});
    for (std::int64_t row = 0; row < out_.rows; ++row) {
        if (const float value = values[static_cast<std::size_t>(row)]; !std::isfinite(value)) {
            failRow(tensor, row, fmt::format("{} is not a finite number", value));
        }
    }
    return values;
}

/// Only what belongs to an answer is looked at. Empty where the file has no such tensor.
std::vector<float> RolloutFile::tokenFloats(std::string_view tensor) const {
    if (!has(tensor)) {
        return {};
    }
    std::vector<float> values = floats(tensor, {out_.rows, out_.width});
    for (std::int64_t row = 0; row < out_.rows; ++row) {
        const auto place = static_cast<std::size_t>(row);
        for (std::int64_t token = out_.promptLengths[place]; token < out_.lengths[place]; ++token) {
            if (const float value = values[static_cast<std::size_t>(row * out_.width + token)]; !std::isfinite(value)) {
                failRow(tensor, row, fmt::format("token {}: {} is not a finite number", token, value));
            }
        }
    }
    return values;
}

std::vector<std::int32_t> RolloutFile::rowCounts(std::string_view tensor) const {
    std::vector<std::int32_t> out;
    for (const std::int64_t count : integers(tensor, {out_.rows})) {
        if (count < 1 || count > out_.width) {
            failRow(tensor, static_cast<std::int64_t>(out.size()),
                    fmt::format("{} is not from 1 to {}, the tokens of a row", count, out_.width));
        }
        out.push_back(static_cast<std::int32_t>(count));
    }
    return out;
}

void RolloutFile::checkLengths() const {
    for (std::int64_t row = 0; row < out_.rows; ++row) {
        const auto place = static_cast<std::size_t>(row);
        if (out_.lengths[place] <= out_.promptLengths[place]) {
            failRow("lengths", row,
                    fmt::format("{} leaves no answer after a prompt of {}; lengths count both", out_.lengths[place],
                                base::countText(out_.promptLengths[place], "token")));
        }
    }
}

/// Ids after a row's end may be anything; they become 0.
void RolloutFile::readIds(std::int64_t vocab) {
    const std::vector<std::int64_t> ids = integers("input_ids", {out_.rows, out_.width});
    out_.ids.resize(ids.size());
    for (std::int64_t row = 0; row < out_.rows; ++row) {
        for (std::int64_t token = 0; token < out_.lengths[static_cast<std::size_t>(row)]; ++token) {
            const auto place = static_cast<std::size_t>(row * out_.width + token);
            if (ids[place] < 0 || ids[place] >= vocab) {
                failRow(
                    "input_ids", row,
                    fmt::format("token {}: id {} is outside the model's vocabulary of {}", token, ids[place], vocab));
            }
            out_.ids[place] = static_cast<std::int32_t>(ids[place]);
        }
    }
}

void RolloutFile::readAdvantages() {
    if (has("advantages")) {
        out_.advantages = rowFloats("advantages");
        return;
    }
    if (!has("rewards")) {
        fail("advantages", "missing, and so are rewards; give one of the two");
    }
    out_.rewards = rowFloats("rewards");
    const std::vector<std::int64_t> groups = integers("groups", {out_.rows});
    if (const std::optional<std::size_t> alone = rowAloneInGroup(groups)) {
        failRow("groups", static_cast<std::int64_t>(*alone),
                fmt::format("is alone in group {}, so its reward has nothing to be compared with; give more answers, "
                            "or advantages",
                            groups[*alone]));
    }
    out_.advantages = groupAdvantages(out_.rewards, groups);
}

void RolloutFile::readShape() {
    const TensorEntry& ids = entry("input_ids");
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (ids.shape.size() != 2 || ids.shape[0] < 1 || ids.shape[1] < 2 || ids.shape[0] > kMost || ids.shape[1] > kMost) {
        fail("input_ids", fmt::format("has the shape ({}); (rows, tokens) with a row and two tokens at least is needed",
                                      fmt::join(ids.shape, ", ")));
    }
    out_.rows = ids.shape[0];
    out_.width = ids.shape[1];
}

Rollouts RolloutFile::readRows(std::int64_t vocab) {
    contents_ = "a file of rows has input_ids, and may have prompt_lengths and lengths";
    readShape();
    const auto rows = static_cast<std::size_t>(out_.rows);
    out_.promptLengths = has("prompt_lengths") ? rowCounts("prompt_lengths") : std::vector<std::int32_t>(rows, 1);
    out_.lengths =
        has("lengths") ? rowCounts("lengths") : std::vector<std::int32_t>(rows, static_cast<std::int32_t>(out_.width));
    checkLengths();
    readIds(vocab);
    out_.advantages.resize(rows);
    return std::move(out_); // a member is not moved by itself
}

Rollouts RolloutFile::read(std::int64_t vocab) {
    readShape();
    out_.promptLengths = rowCounts("prompt_lengths");
    out_.lengths = rowCounts("lengths");
    checkLengths();
    readIds(vocab);
    readAdvantages();
    out_.old = tokenFloats("old_logprobs");
    out_.rollout = tokenFloats("rollout_logprobs");
    out_.reference = tokenFloats("reference_logprobs");
    return std::move(out_); // a member is not moved by itself
}

} // namespace

void writeRollouts(const std::string& path, const Rollouts& rollouts) {
    const std::vector<std::int64_t> rows = {rollouts.rows}, tokens = {rollouts.rows, rollouts.width};
    std::vector<TensorSpec> specs;
    std::vector<std::pair<const void*, std::size_t>> contents;
    const auto add = [&](const char* name, DType type, const std::vector<std::int64_t>& shape, const auto& values) {
        if (!values.empty()) {
            specs.push_back({name, type, shape});
            contents.emplace_back(values.data(), values.size() * sizeof(values[0]));
        }
    };
    add("input_ids", DType::I32, tokens, rollouts.ids);
    add("prompt_lengths", DType::I32, rows, rollouts.promptLengths);
    add("lengths", DType::I32, rows, rollouts.lengths);
    add("advantages", DType::F32, rows, rollouts.advantages);
    add("old_logprobs", DType::F32, tokens, rollouts.old);
    add("rollout_logprobs", DType::F32, tokens, rollouts.rollout);
    add("reference_logprobs", DType::F32, tokens, rollouts.reference);
    const auto writer = SafetensorsWriter::create(path, specs, madeBy(kRolloutsOutput));
    for (const auto& [data, bytes] : contents) {
        writer->write(data, bytes);
    }
    writer->finish();
}

Rollouts readRows(const std::string& path, std::int64_t vocab) {
    return RolloutFile(path).readRows(vocab);
}

std::int64_t Rollouts::saidTokens(std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    if (said.empty()) {
        return lengths[at] - promptLengths[at];
    }
    std::int64_t sum = 0;
    for (std::int64_t token = promptLengths[at]; token < lengths[at]; ++token) {
        sum += isSaid(row, token) ? 1 : 0;
    }
    return sum;
}

std::int64_t Rollouts::answerTokens() const {
    std::int64_t sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        sum += saidTokens(row);
    }
    return sum;
}

Rollouts readRollouts(const std::string& path, std::int64_t vocab) {
    return RolloutFile(path).read(vocab);
}

} // namespace vitrine::engine

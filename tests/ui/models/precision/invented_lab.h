// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A model that does not exist, as the Precision lab sees it: eight roles, experts, six formats, a scored text. One
// matrix has weights that are really rounded; its numbers agree with what the lab says of it.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/precision/precision_data.h"
#include "ui/models/precision/tensor_reader.h"

namespace vitrine::test {

struct LabShape {
    int layers = 48, experts = 128, tokens = 2048;
    bool effects = true; ///< of keeping roles in BF16
};

namespace lab {

struct Format {
    const char *name, *title;
    double bits, lostDecibels, kl, topOne, planned, measured;
};
/// lostDecibels: against INT4 with groups of 32.
inline constexpr Format kFormats[] = {{"bf16", "BF16", 16, 0, 0, 1, 526, 526},
                                      {"fp8", "FP8 E4M3, 128 x 128", 8.002, -14.5, .00092, .9908, 813, 796},
                                      {"mxfp4", "MXFP4", 4.25, -.2, .01486, .9590, 1092, 1061},
                                      {"int4:128", "INT4, g128", 4.125, 3.24, .01231, .9635, 1105, 0},
                                      {"int4:32", "INT4, g32", 4.5, 0, .00743, .9731, 1067, 1049},
                                      {"int4:16", "INT4, g16", 5, -1.93, .00412, .9802, 1021, 0}};
inline constexpr std::size_t kInt4 = 4;

inline double ratioOf(const std::string& role, double layer, double noise) {
    const double depth = layer / 47;
    double ratio = 19.6 + noise;
    ratio -= role == "q" ? 3.2 * std::exp(-layer / 1.5) : role == "k" ? .6 + 3.0 * std::exp(-layer / 1.5) : 0;
    ratio -= role == "o"      ? .3 + 2.1 * depth * depth
             : role == "down" ? .7 + 4 * std::pow(std::max(0., depth - .72), 2) / .16
                              : 0;
    ratio -= role == "router" ? 1.4 : role == "gate" ? .3 : 0;
    const bool spike =
        (role == "down" && (layer == 1 || layer == 23)) || (role == "o" && layer == 29) || (role == "k" && layer == 18);
    return ratio - (spike ? 2.2 : 0);
}

inline engine::RoundingError errorOf(std::int64_t count, double squared, double decibels) {
    engine::RoundingError error;
    error.count = count;
    error.squaredValues = squared;
    error.squaredError = squared * std::pow(10.0, -decibels / 10);
    error.squaredRounded = squared - error.squaredError;
    error.products = (error.squaredValues + error.squaredRounded - error.squaredError) / 2;
    error.largest = std::sqrt(error.squaredError / static_cast<double>(count)) * 8;
    return error;
}

/// Symmetric integers of four bits over groups of `group`, scales as bfloat16.
struct Rounded {
    std::vector<float> values, rounded, scales;
    std::vector<std::int32_t> codes;
};
inline float toBf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000U);
}
inline Rounded roundToInt4(std::vector<float> values, std::size_t group) {
    Rounded out;
    out.values = std::move(values);
    out.rounded.resize(out.values.size());
    out.codes.resize(out.values.size());
    for (std::size_t first = 0; first < out.values.size(); first += group) {
        float largest = 0;
        for (std::size_t i = first; i < first + group; ++i) {
            largest = std::max(largest, std::abs(out.values[i]));
        }
        const float scale = toBf16(std::max(largest / 7, 1e-5F));
        out.scales.push_back(scale);
        for (std::size_t i = first; i < first + group; ++i) {
            out.codes[i] = std::clamp(static_cast<int>(std::nearbyint(out.values[i] / scale)), -7, 7);
            out.rounded[i] = static_cast<float>(out.codes[i]) * scale;
        }
    }
    return out;
}
inline std::vector<float> someWeights(std::size_t rows, std::size_t columns) {
    std::mt19937 random(1706);
    std::normal_distribution<float> normal;
    std::vector<float> column(columns), values;
    for (std::size_t i = 0; i < columns; ++i) {
        column[i] = std::exp(.34F * normal(random)) * (i % 183 == 57 ? 3.4F : 1);
    }
    values.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
        const bool band = r > rows * 57 / 100 && r < rows * 61 / 100;
        const float row = std::exp(.22F * normal(random)) * (band ? 1.7F : 1);
        for (std::size_t c = 0; c < columns; ++c) {
            const float tail = std::exp(.5F * normal(random));
            values.push_back(toBf16(.0118F * column[c] * row * normal(random) * tail));
        }
    }
    values[(rows * 59 / 100) * columns + 442 % columns] = .97265625F; // sets the scale of its group alone
    return values;
}

inline engine::GroupError groupError(const Rounded& matrix, std::size_t columns, std::size_t group, std::size_t at) {
    engine::GroupError error;
    error.group = static_cast<std::int64_t>(at);
    error.row = static_cast<std::int64_t>(at * group / columns);
    error.first = static_cast<std::int64_t>(at * group % columns);
    double squared = 0;
    for (std::size_t i = at * group; i < (at + 1) * group; ++i) {
        error.largestValue = std::max(error.largestValue, std::abs(matrix.values[i]));
        squared += std::pow(static_cast<double>(matrix.rounded[i]) - matrix.values[i], 2);
    }
    error.rms = static_cast<float>(std::sqrt(squared / static_cast<double>(group)));
    return error;
}

inline engine::GroupDetail groupDetail(const Rounded& matrix, std::size_t columns, std::size_t group, std::size_t at) {
    engine::GroupDetail detail;
    detail.error = groupError(matrix, columns, group, at);
    const auto first = static_cast<std::ptrdiff_t>(at * group), last = first + static_cast<std::ptrdiff_t>(group);
    detail.values.assign(matrix.values.begin() + first, matrix.values.begin() + last);
    detail.rounded.assign(matrix.rounded.begin() + first, matrix.rounded.begin() + last);
    detail.step = matrix.scales[at];
    for (int code = -7; code <= 7; ++code) {
        detail.levels.push_back(static_cast<float>(code) * detail.step);
    }
    detail.zeroLevel = 7;
    for (auto i = first; i < last; ++i) {
        detail.codes.push_back(matrix.codes[static_cast<std::size_t>(i)] + 7);
    }
    return detail;
}

} // namespace lab

/// The matrix that is really rounded: down_proj of expert 17 (or the last) of the last layer but one.
struct InventedMatrix {
    std::size_t rows = 2048, columns = 768, group = 32;
    lab::Rounded rounded;
    engine::TensorDetail detail;
};

inline const InventedMatrix& inventedMatrix() {
    static const InventedMatrix kMatrix = [] {
        InventedMatrix m;
        m.rounded = lab::roundToInt4(lab::someWeights(m.rows, m.columns), m.group);
        engine::TensorDetail& d = m.detail;
        d.out = static_cast<std::int64_t>(m.rows);
        d.in = static_cast<std::int64_t>(m.columns);
        d.format = "INT4, g32";
        d.error = engine::roundingError(m.rounded.values, m.rounded.rounded);
        d.bytesBf16 = m.rows * m.columns * 2;
        d.bytes = m.rows * m.columns / 2 + m.rows * m.columns / m.group * 2;
        d.group = static_cast<std::int64_t>(m.group);
        d.groupsPerRow = static_cast<std::int64_t>(m.columns / m.group);
        std::vector<engine::GroupError> all;
        for (std::size_t g = 0; g < m.rounded.scales.size(); ++g) {
            all.push_back(lab::groupError(m.rounded, m.columns, m.group, g));
            d.groupRms.push_back(all.back().rms);
        }
        std::ranges::sort(all, std::greater(), &engine::GroupError::rms);
        double squares = 0, worst = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            squares += static_cast<double>(all[i].rms) * all[i].rms;
            worst = i == all.size() / 100 ? squares : worst;
        }
        d.worstPercentShare = worst / squares;
        all.resize(32);
        d.worstGroups = all;
        d.worstRows = {1181, 1259, .101};
        d.histogram.range = .16F;
        d.histogram.before.assign(241, 0);
        d.histogram.after.assign(241, 0);
        const auto count = [&](const std::vector<float>& values, std::vector<std::int64_t>& bins,
                               std::int64_t& outside) {
            for (const float value : values) {
                const double part = (value + .16) / .32;
                part >= 0 && part < 1 ? ++bins[static_cast<std::size_t>(part * 241)] : ++outside;
            }
        };
        count(m.rounded.values, d.histogram.before, d.histogram.outsideBefore);
        count(m.rounded.rounded, d.histogram.after, d.histogram.outsideAfter);
        d.outlierCount = 2117;
        return m;
    }();
    return kMatrix;
}

inline const char* inventedText() {
    return "The area of a regular hexagon with side s is 3√3/2 times s squared. For s = 14 the factor is 196, so the "
           "area is 509.22. Check it by cutting the hexagon into six equilateral triangles, each with area √3/4 times "
           "s squared: six times 84.87 gives 509.22, which agrees. The perimeter is six sides, 84. The apothem is s "
           "times √3/2, or 12.12; half of perimeter times apothem is the area again.\n";
}

inline void addInventedText(engine::PrecisionResult& result, int count) {
    std::mt19937 random(77);
    std::vector<std::string> words;
    std::string word;
    for (const char* at = inventedText(); *at != 0; ++at) {
        const bool ends = *at == ' ' || *at == '.' || *at == ',' || *at == '\n' || (*at >= '0' && *at <= '9');
        if (ends && !word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
        word += *at;
    }
    words.push_back(word);
    result.text.name = "math-16";
    for (int i = 0; i < count; ++i) {
        const std::size_t which = static_cast<std::size_t>(i) % words.size();
        result.text.pieces.push_back(words[which]);
        result.text.ids.push_back(static_cast<std::int32_t>(20 + which));
    }
    result.text.candidatePieces = {{5, "4"}, {6, " the"}};
    std::vector<float> change(static_cast<std::size_t>(count));
    for (float& value : change) {
        const auto draw = static_cast<float>(random() % 1000) / 1000;
        value = (draw - .56F) * (random() % 9 == 0 ? .8F : random() % 3 == 0 ? .25F : .06F);
    }
    for (std::size_t format = 0; format < std::size(lab::kFormats); ++format) {
        const auto strength = static_cast<float>(lab::kFormats[format].kl / lab::kFormats[lab::kInt4].kl);
        for (std::size_t i = 0; i < change.size(); ++i) {
            engine::TokenEffect token;
            if (i > 0) {
                token.logprob = std::min(-.01F, -.31F - static_cast<float>(i % 7) * .2F + change[i] * strength);
                token.kl = static_cast<float>(lab::kFormats[format].kl);
                token.best = {engine::TokenCandidate{result.text.ids[i], token.logprob},
                              engine::TokenCandidate{5, std::log(.9F * (1 - std::exp(token.logprob)))}};
            }
            result.tokens.push_back(token);
        }
    }
}

/// The number of the matrix that inventedMatrix() has.
inline std::size_t inventedWeight(const engine::PrecisionResult& result) {
    std::size_t found = 0;
    std::int32_t last = 0;
    for (const engine::LabWeight& weight : result.weights) {
        last = std::max(last, weight.layer);
    }
    for (std::size_t i = 0; i < result.weights.size(); ++i) {
        const engine::LabWeight& weight = result.weights[i];
        if (weight.role == "down" && weight.layer == std::max(0, last - 1) && weight.expert <= 17) {
            found = i;
        }
    }
    return found;
}

inline engine::PrecisionResult inventedLab(const LabShape& shape = {}) {
    struct Role {
        const char *name, *module;
        std::int64_t out, in;
        bool expert;
    };
    static constexpr Role kRoles[] = {
        {"q", "self_attn.q_proj", 4096, 2048, false},       {"k", "self_attn.k_proj", 512, 2048, false},
        {"v", "self_attn.v_proj", 512, 2048, false},        {"o", "self_attn.o_proj", 2048, 4096, false},
        {"gate", "mlp.experts.gate_proj", 768, 2048, true}, {"up", "mlp.experts.up_proj", 768, 2048, true},
        {"down", "mlp.experts.down_proj", 2048, 768, true}, {"router", "mlp.gate", 128, 2048, false}};
    engine::PrecisionResult result;
    std::mt19937 random(31);
    std::normal_distribution<double> normal;
    std::vector<double> ratios;
    for (int layer = 0; layer < shape.layers; ++layer) {
        for (const Role& role : kRoles) {
            const double own = normal(random) * .3;
            const int experts = role.expert && shape.experts > 0 ? shape.experts : 1;
            for (int expert = 0; expert < experts; ++expert) {
                engine::LabWeight weight;
                std::string module = role.module;
                if (role.expert && shape.experts > 0) {
                    module.insert(std::string("mlp.experts").size(), "." + std::to_string(expert));
                    weight.expert = expert;
                }
                weight.name = "layers." + std::to_string(layer) + "." + module + ".weight";
                weight.layer = layer;
                weight.role = role.name;
                weight.out = role.out;
                weight.in = role.in;
                weight.squaredValues = static_cast<double>(weight.count()) * 4e-4;
                result.weights.push_back(weight);
                ratios.push_back(lab::ratioOf(role.name, layer * 47.0 / std::max(1, shape.layers - 1),
                                              own + (experts > 1 ? normal(random) * .5 : 0)));
            }
        }
    }
    const std::size_t special = inventedWeight(result);
    result.weights[special].squaredValues = inventedMatrix().detail.error.squaredValues;
    for (std::size_t f = 0; f < std::size(lab::kFormats); ++f) {
        const lab::Format& format = lab::kFormats[f];
        engine::FormatEffect effect{format.name,   format.title, format.bits,   0, 0, format.kl,
                                    format.topOne, 6.1,          format.planned};
        for (std::size_t i = 0; i < result.weights.size(); ++i) {
            const engine::LabWeight& weight = result.weights[i];
            engine::WeightEffect one;
            one.kept = f > 0 && weight.role == "router";
            one.bytes = static_cast<std::uint64_t>(static_cast<double>(weight.count()) * format.bits / 8);
            if (f > 0) {
                one.error = lab::errorOf(weight.count(), weight.squaredValues, ratios[i] - format.lostDecibels);
            }
            if (i == special && f == lab::kInt4) {
                one.error = inventedMatrix().detail.error;
            }
            effect.bytes += one.kept ? static_cast<std::uint64_t>(weight.count()) * 2 : one.bytes;
            effect.packedWeights += f > 0 && !one.kept ? 1 : 0;
            result.effects.push_back(one);
        }
        result.keptBytes = 1'242'000'000;
        effect.bytes += result.keptBytes;
        result.formats.push_back(effect);
    }
    for (const auto& [role, gib, saved] : {std::tuple{"k", .07, .00021}, {"down", 12.9, .0031}, {"o", .54, .00071}}) {
        if (shape.effects) {
            const auto bytes = static_cast<std::uint64_t>(gib * (1 << 30));
            result.keep.push_back({lab::kInt4, {role}, bytes, .00743 - saved, saved, std::nullopt});
        }
    }
    if (shape.tokens > 0) {
        addInventedText(result, shape.tokens);
    } else {
        for (engine::FormatEffect& format : result.formats) {
            format.klMean = format.topOne = format.perplexity = std::nullopt;
        }
    }
    return result;
}

/// Details of the invented matrix, whatever weight is asked for.
inline ui::TensorSource inventedSource() {
    ui::TensorSource source;
    source.tensor = [](const ui::PrecisionData& data, std::size_t weight, std::size_t, const base::StopToken&) {
        const InventedMatrix& matrix = inventedMatrix();
        auto tensor = std::make_shared<ui::PrecisionTensor>();
        tensor->detail = matrix.detail;
        tensor->detail.name = data.result.weights[weight].name;
        tensor->worstGroup = lab::groupDetail(matrix.rounded, matrix.columns, matrix.group,
                                              static_cast<std::size_t>(matrix.detail.worstGroups.front().group));
        for (std::size_t f = 0; f < data.result.formats.size(); ++f) {
            const engine::WeightEffect& effect = data.result.effect(f, weight);
            tensor->formats.push_back({data.result.formats[f].name, data.result.formats[f].title, effect.packable,
                                       data.result.formats[f].bitsPerWeight, effect.bytes, effect.error});
        }
        return std::shared_ptr<const ui::PrecisionTensor>(tensor);
    };
    source.group = [](const ui::PrecisionData&, std::size_t, std::size_t, std::int64_t group, const base::StopToken&) {
        const InventedMatrix& matrix = inventedMatrix();
        auto answer = std::make_shared<ui::PrecisionGroup>();
        answer->detail =
            lab::groupDetail(matrix.rounded, matrix.columns, matrix.group, static_cast<std::size_t>(group));
        return std::shared_ptr<const ui::PrecisionGroup>(answer);
    };
    return source;
}

inline sessions::RunInfo inventedRun(const engine::PrecisionResult& result) {
    return runInfo(1, "precision", engine::precisionJson(result).dump(),
                   R"({"vitrine": 1, "workload": "precision", "model": "qwen3-30b"})");
}

} // namespace vitrine::test

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The JSON form: "formats" and "keep" are rows of results; "precision" is data in columns, for a model has many
// thousand weights. Columns of effects are (formats, weights) or (formats, tokens).

#include "engine/workload/precision/precision_result.h"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr double kGib = 1073741824.0;
constexpr std::size_t kMostEntries = std::size_t{1} << 26; ///< of a column

/// Nine digits hold a float exactly and keep the text short.
double short9(double value) {
    return std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr);
}

Json numberJson(double value) {
    return std::isfinite(value) ? Json(short9(value)) : Json();
}

Json maybeJson(const std::optional<double>& value) {
    return value ? numberJson(*value) : Json();
}

template <class Row, class Of> Json columnOf(const std::vector<Row>& rows, const Of& of) {
    Json column = Json::array();
    for (const Row& row : rows) {
        column.push_back(of(row));
    }
    return column;
}

template <class Row, class Of> Json numbersOf(const std::vector<Row>& rows, const Of& of) {
    return columnOf(rows, [&](const Row& row) { return numberJson(of(row)); });
}

Json formatsJson(const PrecisionResult& result) {
    return columnOf(result.formats, [&](const FormatEffect& format) {
        const auto number = static_cast<std::size_t>(&format - result.formats.data());
        return Json{{result::kName.key, format.name},
                    {result::kTitle.key, format.title},
                    {result::kBitsPerWeight.key, numberJson(format.bitsPerWeight)},
                    {result::kModelBytes.key, format.bytes},
                    {result::kPackedWeights.key, format.packedWeights},
                    {result::kSignalToNoise.key, maybeJson(packedError(result, number).signalToNoise())},
                    {result::kDivergence.key, maybeJson(format.klMean)},
                    {result::kTopOne.key, maybeJson(format.topOne)},
                    {result::kPerplexity.key, maybeJson(format.perplexity)},
                    {result::kPlannedRate.key, maybeJson(format.plannedRate)}};
    });
}

/// Null for all layers.
Json layerJson(std::int32_t layer) {
    return layer < 0 ? Json() : Json(layer);
}

Json keepJson(const PrecisionResult& result) {
    return columnOf(result.keep, [&](const KeepEffect& keep) {
        return Json{{result::kFormat.key, result.formats[keep.format].name},
                    {result::kRole.key, keep.part.role},
                    {result::kFirstLayer.key, layerJson(keep.part.firstLayer)},
                    {result::kLastLayer.key, layerJson(keep.part.lastLayer)},
                    {result::kBytesAdded.key, keep.bytesAdded},
                    {result::kDivergence.key, numberJson(keep.klMean)},
                    {result::kDivergenceSaved.key, numberJson(keep.klSaved)},
                    {result::kPlannedRate.key, maybeJson(keep.plannedRate)}};
    });
}

Json weightsJson(const std::vector<LabWeight>& weights) {
    return {{"name", columnOf(weights, [](const LabWeight& w) { return w.name; })},
            {"layer", columnOf(weights, [](const LabWeight& w) { return w.layer; })},
            {"role", columnOf(weights, [](const LabWeight& w) { return w.role; })},
            {"expert", columnOf(weights, [](const LabWeight& w) { return w.expert; })},
            {"out", columnOf(weights, [](const LabWeight& w) { return w.out; })},
            {"in", columnOf(weights, [](const LabWeight& w) { return w.in; })},
            {"squared_values", numbersOf(weights, [](const LabWeight& w) { return w.squaredValues; })}};
}

/// The products follow from the three sums of squares: 2 x y = x^2 + y^2 - (x - y)^2.
Json effectsJson(const std::vector<WeightEffect>& effects) {
    return {{"packable", columnOf(effects, [](const WeightEffect& e) { return e.packable ? 1 : 0; })},
            {"kept", columnOf(effects, [](const WeightEffect& e) { return e.kept ? 1 : 0; })},
            {"bytes", columnOf(effects, [](const WeightEffect& e) { return e.bytes; })},
            {"measured", columnOf(effects, [](const WeightEffect& e) { return e.error.count > 0 ? 1 : 0; })},
            {"squared_error", numbersOf(effects, [](const WeightEffect& e) { return e.error.squaredError; })},
            {"squared_rounded", numbersOf(effects, [](const WeightEffect& e) { return e.error.squaredRounded; })},
            {"largest", numbersOf(effects, [](const WeightEffect& e) { return e.error.largest; })}};
}

Json textJson(const LabText& text) {
    Json candidates = Json::array();
    for (const auto& [id, piece] : text.candidatePieces) {
        candidates.push_back({id, piece});
    }
    return {{"name", text.name}, {"ids", text.ids}, {"pieces", text.pieces}, {"candidates", std::move(candidates)}};
}

Json tokensJson(const std::vector<TokenEffect>& tokens) {
    return {{"logprob", numbersOf(tokens, [](const TokenEffect& t) { return t.logprob; })},
            {"kl", numbersOf(tokens, [](const TokenEffect& t) { return t.kl; })},
            {"first", columnOf(tokens, [](const TokenEffect& t) { return t.best[0].id; })},
            {"first_logprob", numbersOf(tokens, [](const TokenEffect& t) { return t.best[0].logprob; })},
            {"second", columnOf(tokens, [](const TokenEffect& t) { return t.best[1].id; })},
            {"second_logprob", numbersOf(tokens, [](const TokenEffect& t) { return t.best[1].logprob; })}};
}

/// Reads JSON that may be anything: every access checks, and a failure is remembered.
class Reader {
public:
    const Json& member(const Json& object, const char* key) {
        const auto found = object.is_object() ? object.find(key) : object.end();
        return found == object.end() || !object.is_object() ? fail() : *found;
    }
    /// A column of exactly `count` entries; nothing else is taken.
    template <class Take> void column(const Json& table, const char* key, std::size_t count, const Take& take) {
        const Json& values = member(table, key);
        if (!values.is_array() || values.size() != count) {
            fail();
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            take(i, values[i]);
        }
    }
    double number(const Json& value) {
        if (value.is_null()) {
            return std::nan(""); // a value that was not finite
        }
        return value.is_number() ? value.get<double>() : (fail(), 0.0);
    }
    std::int64_t integer(const Json& value, std::int64_t least) {
        const bool good = value.is_number_integer() &&
                          !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
        const std::int64_t number = good ? value.get<std::int64_t>() : (fail(), least);
        return number < least ? (fail(), least) : number;
    }
    std::int32_t id(const Json& value) {
        const std::int64_t number = integer(value, -1);
        return number > INT32_MAX ? (fail(), -1) : static_cast<std::int32_t>(number);
    }
    std::string text(const Json& value) {
        return value.is_string() ? value.get<std::string>() : (fail(), std::string());
    }
    const Json& fail() {
        static const Json kNothing;
        good_ = false;
        return kNothing;
    }
    bool good() const { return good_; }

private:
    bool good_ = true;
};

void readFormats(Reader& reader, const Json& rows, PrecisionResult& out) {
    if (!rows.is_array() || rows.empty()) {
        reader.fail();
        return;
    }
    for (const Json& row : rows) {
        FormatEffect& format = out.formats.emplace_back();
        format.name = textOf(row, result::kName);
        format.title = textOf(row, result::kTitle);
        format.bitsPerWeight = numberOf(row, result::kBitsPerWeight).value_or(0);
        format.bytes = countOf(row, result::kModelBytes).value_or(0);
        format.packedWeights = countOf(row, result::kPackedWeights).value_or(0);
        format.klMean = numberOf(row, result::kDivergence);
        format.topOne = numberOf(row, result::kTopOne);
        format.perplexity = numberOf(row, result::kPerplexity);
        format.plannedRate = numberOf(row, result::kPlannedRate);
    }
}

void readKeep(Reader& reader, const Json& rows, PrecisionResult& out) {
    for (const Json& row : rows) {
        KeepEffect& keep = out.keep.emplace_back();
        const std::string name = textOf(row, result::kFormat);
        while (keep.format < out.formats.size() && out.formats[keep.format].name != name) {
            ++keep.format;
        }
        if (keep.format == out.formats.size()) {
            reader.fail();
            return;
        }
        const auto layerOf = [&](const ResultField& field) {
            const Json* layer = valueOf(row, field);
            return layer == nullptr || layer->is_null() ? -1 : reader.id(*layer);
        };
        keep.part = {textOf(row, result::kRole), layerOf(result::kFirstLayer), layerOf(result::kLastLayer)};
        keep.bytesAdded = countOf(row, result::kBytesAdded).value_or(0);
        keep.klMean = numberOf(row, result::kDivergence).value_or(std::nan(""));
        keep.klSaved = numberOf(row, result::kDivergenceSaved).value_or(std::nan(""));
        keep.plannedRate = numberOf(row, result::kPlannedRate);
    }
}

void readWeights(Reader& reader, const Json& table, PrecisionResult& out) {
    const Json& names = reader.member(table, "name");
    const std::size_t count = names.is_array() ? names.size() : 0;
    if (!names.is_array() || count > kMostEntries) {
        reader.fail();
        return;
    }
    std::vector<LabWeight>& weights = out.weights;
    weights.resize(count);
    reader.column(table, "name", count, [&](std::size_t i, const Json& v) { weights[i].name = reader.text(v); });
    reader.column(table, "layer", count, [&](std::size_t i, const Json& v) { weights[i].layer = reader.id(v); });
    reader.column(table, "role", count, [&](std::size_t i, const Json& v) { weights[i].role = reader.text(v); });
    reader.column(table, "expert", count, [&](std::size_t i, const Json& v) { weights[i].expert = reader.id(v); });
    reader.column(table, "out", count, [&](std::size_t i, const Json& v) { weights[i].out = reader.id(v); });
    reader.column(table, "in", count, [&](std::size_t i, const Json& v) { weights[i].in = reader.id(v); });
    reader.column(table, "squared_values", count,
                  [&](std::size_t i, const Json& v) { weights[i].squaredValues = reader.number(v); });
}

/// The number of entries of columns over formats and rows; nothing where the table has none of that size.
std::size_t entriesOf(Reader& reader, const Json& table, const char* key, std::size_t formats, std::size_t rows) {
    const Json& first = reader.member(table, key);
    if (!first.is_array() || first.size() > kMostEntries || first.size() != formats * rows) {
        reader.fail();
        return 0;
    }
    return first.size();
}

void readEffects(Reader& reader, const Json& table, PrecisionResult& out) {
    const std::size_t count = entriesOf(reader, table, "bytes", out.formats.size(), out.weights.size());
    std::vector<WeightEffect>& effects = out.effects;
    effects.resize(count);
    reader.column(table, "packable", count,
                  [&](std::size_t i, const Json& v) { effects[i].packable = reader.integer(v, 0) != 0; });
    reader.column(table, "kept", count,
                  [&](std::size_t i, const Json& v) { effects[i].kept = reader.integer(v, 0) != 0; });
    reader.column(table, "bytes", count, [&](std::size_t i, const Json& v) {
        effects[i].bytes = static_cast<std::uint64_t>(reader.integer(v, 0));
    });
    reader.column(table, "measured", count, [&](std::size_t i, const Json& v) {
        const LabWeight& weight = out.weights[i % out.weights.size()];
        const bool measured = reader.integer(v, 0) != 0;
        effects[i].error.count = measured ? weight.count() : 0;
        effects[i].error.squaredValues = measured ? weight.squaredValues : 0;
    });
    reader.column(table, "squared_error", count,
                  [&](std::size_t i, const Json& v) { effects[i].error.squaredError = reader.number(v); });
    reader.column(table, "squared_rounded", count,
                  [&](std::size_t i, const Json& v) { effects[i].error.squaredRounded = reader.number(v); });
    reader.column(table, "largest", count,
                  [&](std::size_t i, const Json& v) { effects[i].error.largest = reader.number(v); });
    for (WeightEffect& effect : effects) {
        RoundingError& error = effect.error;
        error.products = (error.squaredValues + error.squaredRounded - error.squaredError) / 2;
    }
}

void readText(Reader& reader, const Json& table, LabText& text) {
    text.name = reader.text(reader.member(table, "name"));
    const Json& ids = reader.member(table, "ids");
    const std::size_t count = ids.is_array() && ids.size() <= kMostEntries ? ids.size() : 0;
    text.ids.resize(count);
    text.pieces.resize(count);
    reader.column(table, "ids", count, [&](std::size_t i, const Json& v) { text.ids[i] = reader.id(v); });
    reader.column(table, "pieces", count, [&](std::size_t i, const Json& v) { text.pieces[i] = reader.text(v); });
    for (const Json& pair : reader.member(table, "candidates")) {
        if (!pair.is_array() || pair.size() != 2) {
            reader.fail();
            return;
        }
        text.candidatePieces.emplace_back(reader.id(pair[0]), reader.text(pair[1]));
    }
}

void readTokens(Reader& reader, const Json& table, PrecisionResult& out) {
    const std::size_t count = entriesOf(reader, table, "logprob", out.formats.size(), out.text.ids.size());
    std::vector<TokenEffect>& tokens = out.tokens;
    tokens.resize(count);
    const auto floats = [&](const char* key, auto&& place) {
        reader.column(table, key, count,
                      [&](std::size_t i, const Json& v) { place(tokens[i]) = static_cast<float>(reader.number(v)); });
    };
    const auto ids = [&](const char* key, std::size_t which) {
        reader.column(table, key, count,
                      [&](std::size_t i, const Json& v) { tokens[i].best[which].id = reader.id(v); });
    };
    floats("logprob", [](TokenEffect& t) -> float& { return t.logprob; });
    floats("kl", [](TokenEffect& t) -> float& { return t.kl; });
    floats("first_logprob", [](TokenEffect& t) -> float& { return t.best[0].logprob; });
    floats("second_logprob", [](TokenEffect& t) -> float& { return t.best[1].logprob; });
    ids("first", 0);
    ids("second", 1);
}

} // namespace

RoundingError packedError(const PrecisionResult& result, std::size_t format) {
    RoundingError sum;
    for (std::size_t weight = 0; weight < result.weights.size(); ++weight) {
        const WeightEffect& effect = result.effect(format, weight);
        if (!effect.kept) {
            sum.add(effect.error);
        }
    }
    return sum;
}

double KeepEffect::klSavedPerGib() const {
    return bytesAdded == 0 ? 0 : klSaved / (static_cast<double>(bytesAdded) / kGib);
}

nlohmann::json precisionJson(const PrecisionResult& result) {
    return {{result::kFormats.key, formatsJson(result)},
            {result::kKeep.key, keepJson(result)},
            {result::kPrecision.key,
             {{"weights", weightsJson(result.weights)},
              {"effects", effectsJson(result.effects)},
              {"text", textJson(result.text)},
              {"tokens", tokensJson(result.tokens)},
              {"kept_bytes", result.keptBytes}}}};
}

std::optional<PrecisionResult> precisionFromJson(const nlohmann::json& json) {
    Reader reader;
    PrecisionResult out;
    readFormats(reader, rowsOf(json, result::kFormats), out);
    const Json& data = reader.member(json, "precision");
    if (reader.good()) {
        readKeep(reader, rowsOf(json, result::kKeep), out);
        readWeights(reader, reader.member(data, "weights"), out);
        readText(reader, reader.member(data, "text"), out.text);
        out.keptBytes = static_cast<std::uint64_t>(reader.integer(reader.member(data, "kept_bytes"), 0));
    }
    if (reader.good()) {
        readEffects(reader, reader.member(data, "effects"), out);
        readTokens(reader, reader.member(data, "tokens"), out);
    }
    return reader.good() ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_weights.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "engine/checkpoint/overlay_checkpoint.h"
#include "engine/checkpoint/unused_keys.h"
#include "engine/training/adapters/dora_rows.h"

namespace vitrine::engine {

using kernels::DType;

namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

std::string shapeText(const std::vector<std::int64_t>& shape) {
    return fmt::format("({})", fmt::join(shape, ", "));
}

/// A weight while it is put together.
struct Overlaid {
    RowMaker rows;
    std::vector<std::int64_t> shape;
    DType dtype = DType::F32;
    bool changed = false; ///< it is not that of the base model
};

class WeightsBuilder {
public:
    WeightsBuilder(ModelSource source, const AdapterFile& file) : source_(std::move(source)), file_(file) {
        for (TensorSpec& spec : expectedTensors(source_.config)) {
            specs_.emplace(spec.packed() ? spec.weight : spec.name, spec);
        }
    }

    ModelSource build() {
        if (!changesWeights()) {
            return std::move(source_);
        }
        if (source_.synthetic()) {
            throw base::Unsupported(file_.tensors().path() + ": the adapter changes weights of its base model, and a "
                                                             "synthetic model has none to change; give a model folder");
        }
        requireSavedModules();
        for (const AdapterWhole& whole : file_.wholes()) {
            if (whole.parameter != kEmbedding && whole.parameter != kHead) {
                Overlaid& weight = weightOf(whole.parameter, *whole.entry);
                replace(weight, whole);
            }
        }
        embeddingAndHead();
        for (const auto& [text, entry] : file_.parts()) {
            addPart(*AdapterTensorName::parse(text), *entry);
        }
        requireTrainedRows();
        return overlaid();
    }

private:
    using Part = AdapterTensorName::Part;

    [[noreturn]] void bad(const TensorEntry& entry, const std::string& what) const {
        throw base::BadInput(fmt::format("{}: {}: {}", file_.tensors().path(), entry.name, what));
    }

    bool adaptsTiedHead() const {
        AdapterTensorName head;
        head.module = "lm_head";
        return source_.config.tiedEmbeddings && file_.find(head.text()) != nullptr;
    }

    /// DoRA changes the embedding itself, but not the head that is tied to it.
    bool adaptsWeightOfEmbedding() const {
        AdapterTensorName embedding;
        embedding.module = moduleOfParameter(kEmbedding);
        embedding.part = Part::Magnitude;
        return file_.config().dora && file_.find(embedding.text()) != nullptr;
    }

    bool changesWeights() const {
        return !file_.wholes().empty() || !file_.config().trainedRows.empty() || file_.config().dora ||
               adaptsTiedHead();
    }

    /// PEFT reads no adapter that lacks what modules_to_save names.
    void requireSavedModules() const {
        const auto stored = [&](const std::string& parameter) {
            return std::ranges::any_of(file_.wholes(),
                                       [&](const AdapterWhole& whole) { return whole.parameter == parameter; });
        };
        std::vector<std::string> names;
        names.reserve(specs_.size() + 1);
        for (const auto& [name, spec] : specs_) {
            names.push_back(name);
        }
        if (source_.config.tiedEmbeddings) {
            names.emplace_back(kHead);
        }
        for (const std::string& name : names) {
            if (file_.names().saves(moduleOfParameter(name)) && name.ends_with(".weight") && !stored(name)) {
                throw base::BadInput(fmt::format("{}: {}: missing, though modules_to_save of adapter_config.json names "
                                                 "its module; save the adapter again",
                                                 file_.tensors().path(), name));
            }
        }
    }

    void requireTrainedRows() const {
        const bool given = std::ranges::any_of(
            file_.parts(), [](const auto& part) { return AdapterTensorName::parse(part.first)->part == Part::Rows; });
        if (!file_.config().trainedRows.empty() && !given) {
            throw base::BadInput(file_.tensors().path() + ": token_adapter.trainable_tokens_delta: missing, though "
                                                          "adapter_config.json has trainable_token_indices; save the "
                                                          "adapter again");
        }
    }

    /// The weight of the base model, which the tensor `entry` is about.
    Overlaid& weightOf(const std::string& parameter, const TensorEntry& entry) {
        if (const auto found = weights_.find(parameter); found != weights_.end()) {
            return found->second;
        }
        const auto spec = specs_.find(parameter);
        if (spec == specs_.end()) {
            bad(entry, fmt::format("the model has no parameter \"{}\"; give the adapter's own base model", parameter));
        }
        const Checkpoint::Location* location = findModelTensor(*source_.checkpoint, parameter);
        if (spec->second.packed() || location == nullptr || !kernels::isFloat(location->entry->dtype)) {
            throw base::Unsupported(
                fmt::format("{}: {}: the base model has {} packed, so the adapter cannot change it; "
                            "give the base model in bf16",
                            file_.tensors().path(), entry.name, parameter));
        }
        Overlaid weight{rowsOf(*location->file, *location->entry), location->entry->shape, location->entry->dtype};
        return weights_.emplace(parameter, std::move(weight)).first->second;
    }

    /// Puts a tensor of the file in the place of a weight. `resizes`: it may have another number of rows.
    void replace(Overlaid& weight, const AdapterWhole& whole, bool resizes = false) {
        const TensorEntry& entry = *whole.entry;
        if (!kernels::isFloat(entry.dtype)) {
            bad(entry, "must be F32, BF16 or F16");
        }
        const bool rows = resizes && entry.shape.size() == 2 && entry.shape[1] == weight.shape[1] && entry.shape[0] > 0;
        if (entry.shape != weight.shape && !rows) {
            bad(entry,
                fmt::format("must have the shape {} of the base model, not {}; give the adapter's own base model",
                            shapeText(weight.shape), shapeText(entry.shape)));
        }
        Overlaid other{rowsOf(file_.tensors(), entry), entry.shape, weight.dtype, true};
        if (!whole.saved && sameValues(weight, other)) {
            return;
        }
        if (!whole.saved && entry.shape == weight.shape) {
            base::logWarning(fmt::format("{}: {}: differs from the base model's weight and is used in its place, as "
                                         "PEFT does",
                                         file_.tensors().path(), entry.name));
        }
        weight = std::move(other);
    }

    /// After rounding to the type that the weight has in the model.
    static bool sameValues(const Overlaid& a, const Overlaid& b) {
        if (a.shape != b.shape) {
            return false;
        }
        OverlaidTensor first{"a", a.dtype, a.shape, a.rows};
        OverlaidTensor second{"b", a.dtype, b.shape, b.rows};
        return equalValues(first, second);
    }

    const AdapterWhole* whole(const char* parameter) const {
        const auto found =
            std::ranges::find_if(file_.wholes(), [&](const AdapterWhole& each) { return each.parameter == parameter; });
        return found == file_.wholes().end() ? nullptr : &*found;
    }

    void embeddingAndHead() {
        const AdapterWhole* embedding = whole(kEmbedding);
        const AdapterWhole* head = whole(kHead);
        if (source_.config.tiedEmbeddings) {
            tiedEmbeddingAndHead(embedding, head);
        } else {
            for (const auto& [tensor, parameter] : {std::pair(embedding, kEmbedding), std::pair(head, kHead)}) {
                if (tensor != nullptr) {
                    replace(weightOf(parameter, *tensor->entry), *tensor, true);
                }
            }
        }
        resize(embedding, head);
    }

    /// Both are one parameter, unless one of them is stored as a copy of its own or is adapted.
    void tiedEmbeddingAndHead(const AdapterWhole* embedding, const AdapterWhole* head) {
        const AdapterWhole* any = embedding != nullptr ? embedding : head;
        const bool ownHead = adaptsTiedHead() || (head != nullptr && head->saved);
        const bool ownEmbedding = (embedding != nullptr && embedding->saved) || adaptsWeightOfEmbedding();
        if (any == nullptr && !ownHead && !ownEmbedding) {
            return;
        }
        static const TensorEntry kNone;
        Overlaid shared = weightOf(kEmbedding, any != nullptr ? *any->entry : kNone);
        for (const AdapterWhole* tensor : {embedding, head}) {
            if (tensor == nullptr || tensor->saved) {
                continue;
            }
            const bool second = tensor == head && embedding != nullptr && !embedding->saved;
            const Overlaid other{rowsOf(file_.tensors(), *tensor->entry), tensor->entry->shape, shared.dtype, true};
            if (second && !sameValues(shared, other)) {
                bad(*tensor->entry, fmt::format("differs from {}, though the base model ties the two; save the adapter "
                                                "with modules_to_save",
                                                embedding->entry->name));
            }
            if (!second) {
                replace(shared, *tensor, true);
            }
        }
        Overlaid own = shared;
        if (embedding != nullptr && embedding->saved) {
            replace(own, *embedding, true);
        }
        weights_.at(kEmbedding) = own;
        if (ownHead || ownEmbedding) {
            if (head != nullptr && head->saved) {
                replace(shared, *head, true);
            }
            shared.changed = true; // no file of the base model has it
            weights_.emplace(kHead, shared);
            untied_ = true;
            base::logInfo(fmt::format("{}: the head and the embedding are no longer one weight with this adapter",
                                      file_.tensors().path()));
        }
    }

    std::int64_t rowsNow(const char* parameter) const {
        const auto found = weights_.find(parameter);
        return found == weights_.end() ? source_.config.vocab : found->second.shape[0];
    }

    /// More rows, or fewer, are those of another vocabulary: all of the model must have it.
    void resize(const AdapterWhole* embedding, const AdapterWhole* head) {
        const std::int64_t rows = rowsNow(kEmbedding);
        const bool tied = source_.config.tiedEmbeddings && !untied_;
        if (!tied && rowsNow(kHead) != rows) {
            const AdapterWhole& given = *(embedding != nullptr ? embedding : head);
            bad(*given.entry, fmt::format("the embedding has {} rows and the head {}; save the adapter with both "
                                          "(save_embedding_layers=True), or give the base model with its resized "
                                          "embeddings",
                                          rows, rowsNow(kHead)));
        }
        vocab_ = rows;
    }

    /// The indices that adapter_config.json has for the rows of a module.
    const std::vector<std::int64_t>* indicesOf(const std::string& module) const {
        for (const auto& [name, indices] : file_.config().trainedRows) {
            if (module == name || module.ends_with("." + name)) {
                return &indices;
            }
        }
        return nullptr;
    }

    void addPart(const AdapterTensorName& name, const TensorEntry& entry) {
        if (name.part == Part::Rows) {
            replaceRows(name, entry);
        } else if (name.part == Part::Magnitude && file_.config().dora) {
            addDora(name, entry);
        }
    }

    void replaceRows(const AdapterTensorName& name, const TensorEntry& entry) {
        const std::vector<std::int64_t>* indices = indicesOf(name.module);
        if (indices == nullptr) {
            return; // AdapterFile::targets() says it
        }
        Overlaid& weight = weightOf(name.parameter(), entry);
        const auto count = static_cast<std::int64_t>(indices->size());
        if (weight.shape.size() != 2 || entry.shape != std::vector<std::int64_t>{count, weight.shape[1]}) {
            bad(entry, fmt::format("must have {} rows of {} values, not the shape {}", count, weight.shape.back(),
                                   shapeText(entry.shape)));
        }
        std::map<std::int64_t, std::int64_t> places;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = (*indices)[static_cast<std::size_t>(i)];
            if (row >= weight.shape[0]) {
                bad(entry,
                    fmt::format("trainable_token_indices: {} is no row of an embedding of {}", row, weight.shape[0]));
            }
            places[row] = i;
        }
        const auto values = std::make_shared<const std::vector<float>>(file_.readFloats(entry));
        const auto width = static_cast<std::size_t>(weight.shape[1]);
        weight.rows = [places, values, width, below = weight.rows](std::int64_t first, std::int64_t rows,
                                                                   std::span<float> out) {
            below(first, rows, out);
            for (auto place = places.lower_bound(first); place != places.end() && place->first < first + rows;
                 ++place) {
                const auto from = values->begin() + place->second * static_cast<std::ptrdiff_t>(width);
                std::copy_n(from, width, out.begin() + (place->first - first) * static_cast<std::ptrdiff_t>(width));
            }
        };
        weight.changed = true;
        // The head of a model that ties it has the same trained rows.
        if (untied_ && name.parameter() == kEmbedding && whole(kHead) == nullptr) {
            Overlaid& head = weights_.at(kHead);
            if (whole(kEmbedding) == nullptr || !whole(kEmbedding)->saved) {
                head.rows = weight.rows;
            }
        }
    }

    void addDora(const AdapterTensorName& name, const TensorEntry& entry) {
        const std::string parameter = name.module + ".weight";
        const bool embedding = parameter == kEmbedding;
        const auto part = [&](bool first) { return file_.find(loraName(parameter, false, embedding, first).text()); };
        const TensorEntry* a = part(true);
        const TensorEntry* b = part(false);
        if (name.inner > 0 || a == nullptr || b == nullptr) {
            throw base::Unsupported(
                fmt::format("{}: {}: DoRA is supported for linears and the embedding alone; give an adapter without it",
                            file_.tensors().path(), entry.name));
        }
        Overlaid& weight = weightOf(parameter, entry);
        DoraParts parts{file_.readFloats(*a), file_.readFloats(*b), file_.readFloats(entry)};
        const std::int64_t rank = file_.names().rankOf(name.module);
        const auto magnitudes = static_cast<std::int64_t>(parts.magnitude.size());
        const std::size_t outputs = embedding ? 1 : 0; // the axis of the weight
        if (weight.shape.size() != 2 || a->shape != std::vector<std::int64_t>{rank, weight.shape[1 - outputs]} ||
            b->shape != std::vector<std::int64_t>{weight.shape[outputs], rank} || magnitudes != weight.shape[outputs]) {
            bad(entry,
                fmt::format("A {}, B {} and {} magnitudes do not fit a weight {} and rank {}", shapeText(a->shape),
                            shapeText(b->shape), magnitudes, shapeText(weight.shape), rank));
        }
        parts.scale = static_cast<float>(file_.config().scaling(rank, file_.names().alphaOf(name.module)));
        weight.rows = embedding ? doraColumns(weight.rows, std::move(parts), weight.shape[0], weight.shape[1])
                                : doraRows(weight.rows, std::move(parts), weight.shape[1]);
        weight.changed = true;
    }

    /// Puts everything into the source.
    ModelSource overlaid() {
        std::vector<OverlaidTensor> tensors;
        for (auto& [name, weight] : weights_) {
            if (weight.changed) {
                tensors.push_back({name, weight.dtype, weight.shape, keepingFile(std::move(weight.rows))});
            }
        }
        if (!tensors.empty()) {
            source_.checkpoint =
                overlayCheckpoint(source_.checkpoint, std::move(tensors), file_.tensors().path(), identity());
        }
        const bool resized = vocab_ != source_.config.vocab;
        source_.config.tiedEmbeddings = source_.config.tiedEmbeddings && !untied_;
        source_.config.vocab = vocab_;
        if (resized || untied_) {
            nlohmann::json config = nlohmann::json::parse(source_.configText);
            config["vocab_size"] = vocab_;
            config["tie_word_embeddings"] = source_.config.tiedEmbeddings;
            source_.configText = config.dump(2) + "\n";
        }
        if (resized) {
            useTokenizer();
        }
        return std::move(source_);
    }

    /// The maker with the files that it reads.
    RowMaker keepingFile(RowMaker rows) const {
        return [rows = std::move(rows), adapter = file_.sharedTensors(), base = source_.checkpoint](
                   std::int64_t first, std::int64_t count, std::span<float> out) { rows(first, count, out); };
    }

    std::string identity() const {
        std::string text = file_.tensors().identity() + "\n" + file_.config().text();
        for (const auto& [name, weight] : weights_) {
            if (const Checkpoint::Location* location = findModelTensor(*source_.checkpoint, name);
                location != nullptr) {
                text += "\n" + location->file->identity();
            }
        }
        return text;
    }

    /// That of the adapter's folder knows the tokens that were added.
    void useTokenizer() {
        const std::filesystem::path tokenizer = std::filesystem::path(file_.folder()) / "tokenizer.json";
        std::error_code ignored;
        if (std::filesystem::is_regular_file(tokenizer, ignored)) {
            source_.tokenizerFile = tokenizer.string();
        }
        base::logInfo(fmt::format("{}: the vocabulary has {} tokens with this adapter; the tokenizer is {}",
                                  file_.tensors().path(), vocab_,
                                  source_.tokenizerFile.empty() ? "missing" : source_.tokenizerFile));
    }

    ModelSource source_;
    const AdapterFile& file_;
    std::map<std::string, TensorSpec> specs_; ///< by the name of the parameter
    std::map<std::string, Overlaid> weights_;
    std::int64_t vocab_ = 0;
    bool untied_ = false;
};

} // namespace

ModelSource withAdapterWeights(ModelSource source, const AdapterFile& file) {
    std::vector<std::string> unused;
    std::ranges::transform(file.config().unknownKeys, std::back_inserter(unused), base::quotedText);
    warnOfUnusedKeys(file.configPath(), std::move(unused));
    return WeightsBuilder(std::move(source), file).build();
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Checkpoints in Hugging Face's layout: one or many safetensors files, an index, configs. The reader checks a file
// before it gives out its tensors. It reads with pread, so a file that shrinks meanwhile is an error and not a signal.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "engine/checkpoint/chat_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/core/dtype.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// One tensor of a safetensors header.
struct TensorEntry {
    std::string name;
    kernels::DType dtype = kernels::DType::None;
    std::vector<std::int64_t> shape;
    std::uint64_t offset = 0; ///< of its first byte in the file
    std::uint64_t bytes = 0;
};

/// An open file of tensors: a safetensors file, or another one that is seen as such. Thread-safe reads.
class SafetensorsFile {
public:
    /// Opens and checks the file: header length, JSON, offsets without holes, exact file size. Throws BadInput "FILE:
    /// FIELD: what".
    static std::shared_ptr<const SafetensorsFile> open(const std::string& path);
    virtual ~SafetensorsFile() = default;
    virtual const std::string& path() const = 0;
    virtual const std::vector<TensorEntry>& tensors() const = 0; ///< by offset
    virtual const TensorEntry* find(std::string_view name) const = 0;
    virtual const std::map<std::string, std::string>& metadata() const = 0;
    /// A text that identifies the file and the time of its last write, as they were when the file was opened. Equal
    /// texts mean equal bytes.
    virtual const std::string& identity() const = 0;
    /// Reads `bytes` bytes at `offset` inside the tensor. Throws BadInput when the file is shorter than it was.
    virtual void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const = 0;

    /// The share of the file that is in the page cache, from 0 to 1, estimated at a sample of places. 1 where the
    /// system cannot say.
    virtual double cachedShare() const = 0;
    /// Alignment of the buffer of readDirect(), in bytes.
    static constexpr std::uint64_t kDirectAlignment = 4096;
    /// As read(), but past the page cache (O_DIRECT) when the file system supports it. `buffer` is aligned to
    /// kDirectAlignment and has room for `bytes` plus 2 * kDirectAlignment. Returns where in the buffer the bytes
    /// begin.
    virtual const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                        std::uint64_t bytes) const = 0;
};

/// All tensors of a model. Those of a folder: model.safetensors or model.safetensors.index.json with its shards.
class Checkpoint {
public:
    static std::shared_ptr<const Checkpoint> open(const std::string& folder);
    virtual ~Checkpoint() = default;

    struct Location {
        const SafetensorsFile* file = nullptr;
        const TensorEntry* entry = nullptr;
    };
    virtual const Location* find(std::string_view name) const = 0;
    virtual const std::map<std::string, Location, std::less<>>& tensors() const = 0;
    virtual std::uint64_t totalBytes() const = 0; ///< of all tensors
    virtual const std::string& folder() const = 0;
};

/// The tensor that a model calls `name`, null when there is none. Files that transformers saved from a base model
/// (LlamaModel, not LlamaForCausalLM) lack the first "model." of their names; it loads them all the same, and so do we.
/// Of a tied model some writers keep the head alone: it is the embedding then.
const Checkpoint::Location* findModelTensor(const Checkpoint& checkpoint, std::string_view name);

/// Where a model comes from: DIR, FILE.gguf, ORG/NAME in the local Hugging Face cache, or synthetic:NAME.
struct ModelSource {
    std::string name;   ///< as the user wrote it
    std::string folder; ///< empty for synthetic models and GGUF files
    ModelConfig config;
    std::string configText; ///< config.json, with the overrides of a synthetic model; of a GGUF file, what it comes to
    GenerationConfig generation;
    std::shared_ptr<const Checkpoint> checkpoint; ///< null for synthetic models
    std::string tokenizerFile;                    ///< empty: none
    ChatFiles chat;
    bool synthetic() const { return checkpoint == nullptr; }
};

/// `configOverrides` are `--set key=value` pairs for config fields of synthetic models ("num_hidden_layers" "4").
/// Throws BadInput that names the folder, the file and the field.
ModelSource openModel(const std::string& model, const std::map<std::string, std::string>& configOverrides = {});

/// The sorted names of synthetic models: gpt-oss-20b, gpt-oss-120b, mistral-7b, qwen3-4b, llama-3.1-8b, qwen3-30b-a3b,
/// qwen3-235b-a22b, deepseek-v3, kimi-k2, and a tiny of each family ("tiny-gpt-oss", "tiny-llama", ...).
std::vector<std::string> syntheticNames();
/// config.json of a synthetic model (resources/synthetic/NAME.json).
nlohmann::json syntheticConfigJson(const std::string& name);

/// Tensors that a model of this config needs, in checkpoint order: the names, dtypes and shapes of its Hugging Face
/// files. `model` loads by this list, `synthesize` writes it, Meta counts it.
enum class ModelPart : std::uint8_t { Embedding, Head, Attention, Experts, DenseMlp, Router, Norm };
struct TensorSpec {
    std::string name;
    kernels::DType dtype = kernels::DType::BF16;
    std::vector<std::int64_t> shape;
    ModelPart part = ModelPart::Norm;
    std::int32_t layer = -1;
    std::string weight;         ///< name of the packed weight that this tensor is part of; empty: a dense weight
    kernels::Shape weightShape; ///< of that weight, (..., out, in)
    WeightPacking packing;      ///< of that weight
    StoredTensor stored;        ///< the tensor as its storage scheme has it

    bool packed() const { return !weight.empty(); }
};
std::vector<TensorSpec> expectedTensors(const ModelConfig& config);

/// A weight that files may store packed.
struct PackableWeight {
    std::string name;
    std::vector<std::int64_t> shape; ///< (out, in), or (experts, out, in)
    ModelPart part = ModelPart::Attention;
};
std::vector<PackableWeight> packableWeights(const ModelConfig& config);

/// Sets `packings` of a model without files: what its quantization_config says.
void packBySelection(ModelConfig& config);

/// Bytes of a tensor as its spec says.
std::uint64_t bytesOf(const TensorSpec& spec);

/// Sets the fields that only the files determine (packings, fusedExperts). Throws BadInput "FILE: TENSOR:
/// what was expected" when a tensor of the model is missing or has another shape or dtype. Weights that are not U8 may
/// be F32, F16 or BF16, whatever the spec says. Tensors that the model does not need are named at info level, those
/// inside its layers as a warning. openModel calls it.
void checkTensors(ModelConfig& config, const Checkpoint& checkpoint);

/// Writes tensors as safetensors files; used by `synthesize`, `logits --output` and adapters.
class SafetensorsWriter {
public:
    virtual ~SafetensorsWriter() = default;
    virtual void write(const void* data, std::uint64_t bytes) = 0; ///< the next bytes, in the order of `entries`
    virtual void finish() = 0;                                     ///< checks the count, syncs, renames into place
    static std::unique_ptr<SafetensorsWriter> create(const std::string& path, const std::vector<TensorSpec>& entries,
                                                     const std::map<std::string, std::string>& metadata = {});
};

} // namespace vitrine::engine

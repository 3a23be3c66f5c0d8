// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models of GGUF files that the gguf package wrote: their logits are those of the folders that they were made from, and
// those of blocks are those of a file with the floats that the blocks stand for.

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "engine/checkpoint/gguf_file.h"
#include "kernels/core/floats.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/gguf_bytes.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using test::GgufBytes;

std::vector<float> ggufLogits(const std::string& path, const ModelOptions& options = {},
                              kernels::Backend backend = kernels::Backend::Cpu) {
    const auto context = test::makeContext(backend);
    Model model(*context, openModel(path), options, nullptr);
    return test::stepLogits(model, {5, 9, 20, 31, 7, 5, 12, 40, 8, 8, 17});
}

/// The file with every tensor as float32, and embedding and head as F16, which they are in memory.
std::string expandedTwin(const GgufFile& file) {
    GgufBytes out;
    for (const GgufValue& value : file.header().values()) {
        out.copy(value);
    }
    for (const GgufTensor& tensor : file.header().tensors()) {
        std::vector<std::uint8_t> blocks(tensor.bytes);
        file.read(tensor, 0, blocks.data(), blocks.size());
        const std::span<const std::int64_t> shape = tensor.shape();
        const std::int64_t count = kernels::Shape(shape).count();
        std::vector<float> floats(static_cast<std::size_t>(count));
        expandGguf(*tensor.type, blocks, floats.data());
        const bool table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
        const kernels::DType dtype = table ? kernels::DType::F16 : kernels::DType::F32;
        std::string bytes(kernels::bytesOf(dtype, count), '\0');
        kernels::storeFloats(dtype, floats.data(), count, bytes.data(), 0);
        out.tensor(tensor.name, table ? 1 : 0, {shape.begin(), shape.end()}, bytes);
    }
    return out.bytes();
}

/// Part `number` of the file cut into `count`: it has every count-th tensor, and the first part has the metadata.
std::string partOf(const GgufFile& file, std::uint32_t number, std::uint32_t count) {
    GgufBytes out;
    const std::vector<GgufTensor>& tensors = file.header().tensors();
    if (number == 0) {
        for (const GgufValue& value : file.header().values()) {
            out.copy(value);
        }
        out.integer("split.tensors.count", static_cast<std::uint32_t>(tensors.size()));
    }
    out.integer("split.no", number).integer("split.count", count);
    for (std::size_t i = number; i < tensors.size(); i += count) {
        std::string bytes(tensors[i].bytes, '\0');
        file.read(tensors[i], 0, bytes.data(), bytes.size());
        out.tensor(tensors[i].name, tensors[i].type->number, {tensors[i].shape().begin(), tensors[i].shape().end()},
                   bytes);
    }
    return out.bytes();
}

class GgufModels : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GgufModels, GiveTheLogitsOfTheirFolders) {
    const auto& [gguf, folder] = GetParam();
    EXPECT_EQ(ggufLogits(vitrine::test::fixture(gguf)), ggufLogits(vitrine::test::fixture(folder)));
}

TEST_P(GgufModels, RunOnMeta) {
    const std::string path = vitrine::test::fixture(GetParam().first);
    EXPECT_EQ(ggufLogits(path, {}, kernels::Backend::Meta).size(), ggufLogits(path).size());
}

INSTANTIATE_TEST_SUITE_P(Families, GgufModels,
                         ::testing::Values(std::pair{"gguf/llama.gguf", "llama"}, std::pair{"gguf/qwen2.gguf", "qwen2"},
                                           std::pair{"gguf/qwen3.gguf", "qwen3"},
                                           std::pair{"gguf/qwen3-moe.gguf", "qwen3-moe"},
                                           std::pair{"gguf/gpt-oss.gguf", "gpt-oss-mxfp4"}));

TEST(GgufModel, EveryTypeOfBlocksGivesTheLogitsOfItsFloats) {
    const std::string path = vitrine::test::fixture("gguf/mixed.gguf");
    const test::TempFolder folder;
    const std::string twin = folder.write("twin.gguf", expandedTwin(GgufFile(path)));
    ModelOptions options;
    options.widen = true;
    const std::vector<float> packed = ggufLogits(path, options);
    const std::vector<float> floats = ggufLogits(twin, options);
    double spread = 0;
    for (const float value : floats) {
        spread += static_cast<double>(value) * value;
    }
    spread = std::sqrt(spread / static_cast<double>(floats.size()));
    EXPECT_GT(spread, 0.01);
    for (std::size_t i = 0; i < packed.size(); ++i) {
        ASSERT_NEAR(packed[i], floats[i], 2e-5 * spread) << i;
    }
}

TEST(GgufModel, SeveralFilesAreOneModel) {
    const std::string path = vitrine::test::fixture("gguf/mixed.gguf");
    const GgufFile file(path);
    const test::TempFolder folder;
    for (std::uint32_t number = 0; number < 3; ++number) {
        folder.write(fmt::format("cut-{:05}-of-00003.gguf", number + 1), partOf(file, number, 3));
    }
    EXPECT_EQ(ggufLogits(folder.file("cut-00001-of-00003.gguf")), ggufLogits(path));
}

TEST(GgufModel, FilesThatAreNotTheModelsAreNamed) {
    const GgufFile file(vitrine::test::fixture("gguf/mixed.gguf"));
    const test::TempFolder folder;
    const std::string first = folder.write("cut-00001-of-00002.gguf", partOf(file, 0, 2));
    const std::string second = folder.file("cut-00002-of-00002.gguf");
    const auto problem = [&] { return test::failure([&] { openModel(first); }); };
    EXPECT_EQ(problem(), "bad_input: " + first + ": split.count: the model is cut into 2 files, and \"" + second +
                             "\" is missing; put it beside this one");
    folder.write("cut-00002-of-00002.gguf", partOf(file, 2, 3));
    EXPECT_EQ(problem(),
              "bad_input: " + second + ": split.no: is not that of file 2 of 2; the file is of another model");
    folder.write("cut-00002-of-00002.gguf", GgufBytes().integer("split.no", 1).integer("split.count", 2).bytes());
    EXPECT_NE(problem().find("split.tensors.count: is "), std::string::npos) << problem();
    folder.write("cut-00002-of-00002.gguf", GgufBytes()
                                                .integer("split.no", 1)
                                                .integer("split.count", 2)
                                                .tensor(file.header().tensors()[0].name, 0, {1}, "four")
                                                .bytes());
    EXPECT_NE(problem().find("is in another file of the model too"), std::string::npos) << problem();
    folder.write("cut-00002-of-00002.gguf", partOf(file, 1, 2));
    const std::string wrong = test::failure([&] { openModel(second); });
    EXPECT_NE(wrong.find("give the first one, whose name must end with -00001-of-00002.gguf"), std::string::npos)
        << wrong;
}

TEST(GgufModel, LinearsStayPackedAndTheRestIsDense) {
    const ModelSource source = openModel(vitrine::test::fixture("gguf/mixed.gguf"));
    EXPECT_EQ(source.config.packings.size(), 7U);
    EXPECT_EQ(source.config.packing("model.layers.0.mlp.up_proj.weight")->format, kernels::WeightFormat::Mxfp4);
    EXPECT_EQ(source.config.packing("model.layers.0.self_attn.o_proj.weight")->format, kernels::WeightFormat::Int4);
    EXPECT_EQ(source.checkpoint->find("lm_head.weight")->entry->dtype, kernels::DType::F16);
    EXPECT_EQ(source.checkpoint->find("model.norm.weight")->entry->dtype, kernels::DType::F32);
}

TEST(GgufModel, AnyPartOfATensorIsThatPartOfTheWhole) {
    const ModelSource source = openModel(vitrine::test::fixture("gguf/mixed.gguf"));
    for (const auto& [name, location] : source.checkpoint->tensors()) {
        std::vector<std::uint8_t> whole(location.entry->bytes);
        location.file->read(*location.entry, 0, whole.data(), whole.size());
        std::vector<std::uint8_t> parts(whole.size());
        for (std::size_t begin = 0; begin < whole.size(); begin += 1021) {
            const std::size_t count = std::min<std::size_t>(1021, whole.size() - begin);
            location.file->read(*location.entry, begin, parts.data() + begin, count);
        }
        EXPECT_EQ(parts, whole) << name;
    }
}

TEST(GgufModel, AScaleThatIsNoNumberIsNamed) {
    const test::TempFolder folder;
    const std::string path = vitrine::test::fixture("gguf/mixed.gguf");
    std::string bytes = test::readBytes(path);
    const std::uint64_t offset = GgufFile(path).header().tensor("blk.0.ffn_gate.weight")->offset;
    bytes.replace(offset + 144 * 3, 2, "\xFF\x7F");
    const std::string damaged = folder.write("damaged.gguf", bytes);
    EXPECT_EQ(test::failure([&] { ggufLogits(damaged); }),
              "bad_input: " + damaged +
                  ": \"blk.0.ffn_gate.weight\": the scale of block 3 is not a number; the file is damaged");
}

/// Every tensor as the engine reads it.
void readAllTensors(const ModelSource& source) {
    std::vector<std::uint8_t> bytes;
    for (const auto& [name, location] : source.checkpoint->tensors()) {
        bytes.resize(location.entry->bytes);
        location.file->read(*location.entry, 0, bytes.data(), bytes.size());
    }
}

TEST(GgufModel, DamagedHeadersAreReadOrRefused) {
    const test::TempFolder folder;
    for (const char* name : {"gguf/mixed.gguf", "gguf/gpt-oss.gguf", "gguf/llama.gguf"}) {
        const std::string whole = test::readBytes(vitrine::test::fixture(name));
        const GgufFile file(vitrine::test::fixture(name));
        std::uint64_t headerBytes = whole.size();
        for (const GgufTensor& tensor : file.header().tensors()) {
            headerBytes = std::min(headerBytes, tensor.offset);
        }
        std::mt19937 random(7);
        int refused = 0;
        for (int round = 0; round < 150; ++round) {
            std::string bytes = whole;
            for (int i = 0; i <= round % 3; ++i) {
                bytes[random() % headerBytes] = static_cast<char>(round % 2 == 0 ? random() : random() % 4);
            }
            const std::string path = folder.write("damaged.gguf", bytes);
            const std::string message = test::failure([&] { readAllTensors(openModel(path)); });
            refused += message == "no error" ? 0 : 1;
            EXPECT_EQ(message.find("internal"), std::string::npos) << message;
        }
        EXPECT_GT(refused, 30) << name;
    }
}

} // namespace
} // namespace vitrine::engine

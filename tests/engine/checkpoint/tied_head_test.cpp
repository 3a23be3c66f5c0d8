// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/tied_head.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "kernels/core/floats.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/log_capture.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using nlohmann::json;
using test::failure;
using test::TempFolder;
using test::warningsOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
constexpr const char* kHeadName = "lm_head.weight";

struct HeadTensor {
    TensorSpec spec;
    std::vector<char> bytes;
};

/// The tensors of the tied fixture.
class TiedHead : public testing::Test {
protected:
    TiedHead() {
        test::copyFixture("qwen3-tied", folder_);
        const auto file = SafetensorsFile::open(folder_.file("model.safetensors"));
        for (const TensorEntry& entry : file->tensors()) {
            HeadTensor tensor{{}, std::vector<char>(entry.bytes)};
            tensor.spec.name = entry.name;
            tensor.spec.dtype = entry.dtype;
            tensor.spec.shape = entry.shape;
            file->read(entry, 0, tensor.bytes.data(), entry.bytes);
            tensors_.push_back(std::move(tensor));
        }
    }

    HeadTensor& tensor(const std::string& name) {
        return *std::find_if(tensors_.begin(), tensors_.end(),
                             [&](const HeadTensor& each) { return each.spec.name == name; });
    }
    HeadTensor& addHead() {
        HeadTensor head = tensor(kEmbeddingName);
        head.spec.name = kHeadName;
        tensors_.push_back(std::move(head));
        return tensors_.back();
    }
    void write() const {
        std::vector<TensorSpec> specs;
        for (const HeadTensor& each : tensors_) {
            specs.push_back(each.spec);
        }
        const auto writer = SafetensorsWriter::create(folder_.file("model.safetensors"), specs);
        for (const HeadTensor& each : tensors_) {
            writer->write(each.bytes.data(), each.bytes.size());
        }
        writer->finish();
    }
    ModelSource open() {
        write();
        return openModel(folder_.path());
    }

    TempFolder folder_;
    std::vector<HeadTensor> tensors_;
};

TEST_F(TiedHead, ACopyOfTheEmbeddingLeavesThemTied) {
    addHead();
    EXPECT_THAT(warningsOf([&] { EXPECT_TRUE(open().config.tiedEmbeddings); }), IsEmpty());
}

TEST_F(TiedHead, AHeadOfItsOwnIsUsedAndSaid) {
    addHead().bytes.back() ^= 1;
    EXPECT_THAT(warningsOf([&] {
                    const ModelSource source = open();
                    EXPECT_FALSE(source.config.tiedEmbeddings);
                    EXPECT_EQ(json::parse(source.configText)["tie_word_embeddings"], false);
                    EXPECT_EQ(expectedTensors(source.config).back().name, kHeadName);
                }),
                ElementsAre(HasSubstr("lm_head.weight: differs from the embedding")));
}

TEST_F(TiedHead, AnotherTypeWithEqualValuesIsACopy) {
    HeadTensor& head = addHead();
    const auto count = static_cast<std::int64_t>(head.bytes.size() / kernels::bytesOf(head.spec.dtype, 1));
    std::vector<float> values(static_cast<std::size_t>(count));
    kernels::loadFloats(head.spec.dtype, head.bytes.data(), 0, count, values.data());
    const auto store = [&] {
        head.spec.dtype = DType::F32;
        head.bytes.resize(values.size() * sizeof(float));
        kernels::storeFloats(DType::F32, values.data(), count, head.bytes.data(), 0);
    };
    store();
    EXPECT_TRUE(open().config.tiedEmbeddings);
    values[7] += 1e-4F;
    store();
    EXPECT_FALSE(open().config.tiedEmbeddings);
}

TEST_F(TiedHead, AHeadOfAnotherSizeIsAnError) {
    HeadTensor& head = addHead();
    head.spec.shape[0] /= 2;
    head.bytes.resize(head.bytes.size() / 2);
    EXPECT_THAT(failure([&] { open(); }), HasSubstr("lm_head.weight: has shape"));
}

TEST_F(TiedHead, AHeadAloneIsTheEmbeddingToo) {
    tensor(kEmbeddingName).spec.name = kHeadName;
    EXPECT_TRUE(open().config.tiedEmbeddings);
    json config = json::parse(test::readBytes(folder_.file("config.json")));
    config["tie_word_embeddings"] = false;
    folder_.write("config.json", config.dump());
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }), HasSubstr("model.embed_tokens.weight: is missing"));
}

} // namespace
} // namespace vitrine::engine

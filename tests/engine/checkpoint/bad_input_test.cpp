// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Damaged model folders by the hundred: opening one either works or says in one line which file is wrong.

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/philox.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/quant/mxfp4.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::copyFixture;
using test::readBytes;
using test::TempFolder;

/// Opens the folder and reads every tensor, as a load does.
void loadEverything(const std::string& folder) {
    const ModelSource source = openModel(folder);
    std::vector<std::uint8_t> buffer;
    for (const TensorSpec& spec : expectedTensors(source.config)) {
        const auto* location = source.checkpoint->find(spec.name);
        ASSERT_NE(location, nullptr);
        buffer.resize(location->entry->bytes);
        location->file->read(*location->entry, 0, buffer.data(), buffer.size());
        if (spec.dtype == kernels::DType::U8 && spec.name.find("_scales") != std::string::npos) {
            checkMxfp4Scales(buffer, location->file->path() + ": " + spec.name);
        }
    }
}

enum class Expected { Error, EitherWay };

class BadInputTest : public testing::Test {
protected:
    /// Writes `bytes` as `name`, loads the folder, puts the right bytes back.
    void check(const std::string& name, const std::string& bytes, const std::string& what,
               Expected expected = Expected::Error) {
        const std::string good = readBytes(folder_.file(name));
        folder_.write(name, bytes);
        ++count_;
        try {
            loadEverything(folder_.path());
            EXPECT_EQ(expected, Expected::EitherWay) << name << ", " << what << ": accepted";
        } catch (const base::Error& error) {
            const bool inputsFault =
                error.kind() == base::ErrorKind::BadInput || error.kind() == base::ErrorKind::Unsupported;
            EXPECT_TRUE(inputsFault) << what << ": " << error.message();
            EXPECT_EQ(error.message().find_first_of("\n\r"), std::string::npos) << what << ": " << error.message();
            EXPECT_NE(error.message().find(folder_.path()), std::string::npos) << what << ": " << error.message();
            EXPECT_LT(error.message().size(), 700U) << what << ": " << error.message();
        }
        folder_.write(name, good);
    }

    void checkJson(const std::string& name, const std::string& what, const std::function<void(json&)>& change,
                   Expected expected = Expected::Error) {
        json root = json::parse(readBytes(folder_.file(name)));
        change(root);
        check(name, root.dump(), what, expected);
    }

    /// Changes the header and keeps the data.
    void checkHeader(const std::string& name, const std::string& what, const std::function<void(json&)>& change,
                     Expected expected = Expected::Error) {
        const std::string good = readBytes(folder_.file(name));
        std::uint64_t length = 0;
        std::memcpy(&length, good.data(), 8);
        json header = json::parse(good.substr(8, length));
        change(header);
        check(name, test::safetensorsBytes(header.dump(), 0) + good.substr(8 + length), what, expected);
    }

    TempFolder folder_;
    int count_ = 0;
};

std::vector<std::string> brokenTexts() {
    std::vector<std::string> texts{"",
                                   " ",
                                   "null",
                                   "3",
                                   "[]",
                                   "\"text\"",
                                   "{",
                                   "}",
                                   "{\"a\":}",
                                   "{\"a\":1,}",
                                   "{\"a\":1}{}",
                                   "{\"a\":1e999}",
                                   "{\"a\":NaN}",
                                   "{\"a\":1,\"a\":2}",
                                   "{\"\xff\":1}",
                                   "{\"\\ud800\":1}",
                                   std::string("{\"a\":\0}", 7),
                                   "\xef\xbb\xbf{}",
                                   "{\"a\":\"line\nbreak\"}",
                                   "// comment\n{}"};
    texts.emplace_back(100000, '[');
    texts.push_back("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}");
    std::string nested;
    for (int i = 0; i < vitrine::test::repetitions(3000); ++i) {
        nested += "{\"a\":";
    }
    texts.push_back(nested + "1" + std::string(3000, '}'));
    return texts;
}

TEST_F(BadInputTest, BrokenTexts) {
    copyFixture("gpt-oss-bf16", folder_);
    const std::string shard = "model-00001-of-00004.safetensors";
    for (const std::string& text : brokenTexts()) {
        const std::string what = text.substr(0, 20);
        check("config.json", text, what);
        check("generation_config.json", text, what);
        check("model.safetensors.index.json", text, what);
        check(shard, text, what);
        check(shard, test::safetensorsBytes(text, 0), "header " + what);
        check(shard, test::safetensorsBytes(text, 64), "header and data " + what);
    }
    EXPECT_GE(count_, 130);
}

TEST_F(BadInputTest, Truncated) {
    copyFixture("gpt-oss-mxfp4", folder_);
    folder_.write("generation_config.json", R"({"eos_token_id": [2, 3], "do_sample": true})");
    for (const char* name : {"model.safetensors", "config.json", "generation_config.json"}) {
        const std::string good = readBytes(folder_.file(name));
        for (std::size_t part = 0; part < 20; ++part) {
            check(name, good.substr(0, (good.size() - 2) * part / 20), "cut to part " + std::to_string(part));
        }
    }
    const std::string good = readBytes(folder_.file("model.safetensors"));
    check("model.safetensors", good + '\0', "one byte more");
    check("model.safetensors", good.substr(0, good.size() - 1), "one byte less");
}

TEST_F(BadInputTest, Headers) {
    copyFixture("gpt-oss-mxfp4", folder_);
    const std::string file = "model.safetensors";
    const std::string norm = "model.norm.weight";
    const std::string good = readBytes(folder_.file(file));
    for (const std::uint64_t length :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100'000'001}, good.size() - 7, std::uint64_t{1} << 40,
          std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
        std::string bytes = good;
        std::memcpy(bytes.data(), &length, 8);
        check(file, bytes, "header length " + std::to_string(length));
    }
    const auto set = [&](const char* key, const json& value) {
        checkHeader(file, std::string(key) + " " + value.dump(), [&](json& h) { h[norm][key] = value; });
    };
    for (const json& dtype : {json("F32"), json("bf16"), json(""), json(3), json(nullptr), json::array(), json("U8"),
                              json("F4"), json("C64"), json("BF16 ")}) {
        set("dtype", dtype);
    }
    for (const char* shape : {"[]", "[63]", "[65]", "[64,1]", "[-64]", "[64.0]", "[\"64\"]", "64", "null",
                              "[18446744073709551615]", "[9223372036854775807,2]", "[4294967296,4294967296]", "[0]",
                              "[0,9223372036854775807]", "[[64]]", "[true]", "[1e300]", "{}"}) {
        set("shape", json::parse(shape));
    }
    for (const char* offsets :
         {"[]", "[0]", "[0,1,2]", "[0,0]", "[1,0]", "[-128,0]", "[0.5,1]", "null", "\"0\"",
          "[18446744073709551488,18446744073709551615]", "[9223372036854775680,9223372036854775807]",
          "[0,9223372036854775807]", "{}", "[0,128]"}) {
        set("data_offsets", json::parse(offsets));
    }
    set("strides", 1);
    const auto header = [&](const char* what, const std::function<void(json&)>& change) {
        checkHeader(file, what, change);
    };
    header("tensor missing", [&](json& h) { h.erase(norm); });
    header("tensor renamed", [&](json& h) {
        h["model.norm.bias"] = h[norm];
        h.erase(norm);
    });
    header("overlap", [&](json& h) { h["other"] = h[norm]; });
    header("no dtype", [&](json& h) { h[norm].erase("dtype"); });
    header("no shape", [&](json& h) { h[norm].erase("shape"); });
    header("no offsets", [&](json& h) { h[norm].erase("data_offsets"); });
    header("a line break in a name",
           [&](json& h) { h["a\nb"] = {{"dtype", "X"}, {"shape", {1}}, {"data_offsets", {0, 1}}}; });
    header("a long name", [&](json& h) { h[std::string(100000, 'n')] = 1; });
    header("metadata of numbers", [](json& h) { h["__metadata__"] = {{"a", 1}}; });
    header("metadata as a list", [](json& h) { h["__metadata__"] = json::array(); });
    header("everything empty", [](json& h) { h = json::object(); });
    header("two tensors changed places", [&](json& h) { std::swap(h[norm], h["model.layers.0.mlp.router.weight"]); });
}

TEST_F(BadInputTest, NanScales) {
    copyFixture("gpt-oss-mxfp4", folder_);
    const auto checkpoint = Checkpoint::open(folder_.path());
    const std::string good = readBytes(folder_.file("model.safetensors"));
    for (int layer = 0; layer < 4; ++layer) {
        for (const char* product : {"gate_up_proj", "down_proj"}) {
            const std::string name = "model.layers." + std::to_string(layer) + ".mlp.experts." + product + "_scales";
            const auto* location = checkpoint->find(name);
            ASSERT_NE(location, nullptr);
            std::string bytes = good;
            bytes[location->entry->offset + location->entry->bytes - 1 - static_cast<std::size_t>(layer)] = '\xff';
            check("model.safetensors", bytes, "NaN in " + name);
        }
    }
}

TEST_F(BadInputTest, Configs) {
    copyFixture("gpt-oss-mxfp4", folder_);
    const std::vector<json> wrong{json(nullptr),
                                  json(-1),
                                  json(0),
                                  json(1.5),
                                  json("4"),
                                  json(true),
                                  json::array(),
                                  json::object(),
                                  json(std::uint64_t{1} << 63),
                                  json(std::int64_t{1} << 40),
                                  json(7),
                                  json(1e308)};
    const json good = json::parse(readBytes(folder_.file("config.json")));
    for (const char* key : {"head_dim",
                            "hidden_size",
                            "intermediate_size",
                            "num_attention_heads",
                            "num_experts_per_tok",
                            "num_hidden_layers",
                            "num_key_value_heads",
                            "num_local_experts",
                            "vocab_size",
                            "layer_types",
                            "sliding_window",
                            "max_position_embeddings",
                            "rms_norm_eps",
                            "rope_theta",
                            "rope_scaling",
                            "quantization_config",
                            "eos_token_id",
                            "tie_word_embeddings",
                            "attention_bias",
                            "hidden_act",
                            "model_type",
                            "swiglu_limit",
                            "partial_rotary_factor"}) {
        for (const json& value : wrong) {
            checkJson(
                "config.json", std::string(key) + " = " + value.dump(), [&](json& c) { c[key] = value; },
                Expected::EitherWay);
        }
    }
    for (const char* key :
         {"beta_fast", "beta_slow", "factor", "original_max_position_embeddings", "rope_type", "truncate"}) {
        for (const json& value : wrong) {
            checkJson(
                "config.json", std::string("rope_scaling.") + key + " = " + value.dump(),
                [&](json& c) { c["rope_scaling"][key] = value; }, Expected::EitherWay);
        }
    }
    checkJson("config.json", "huge products", [](json& c) {
        c["hidden_size"] = 1 << 24;
        c["intermediate_size"] = 1 << 24;
        c["num_local_experts"] = 8192;
        c["vocab_size"] = 1 << 22;
    });
    checkJson("config.json", "too many experts", [](json& c) {
        c["num_local_experts"] = 8192;
        c["num_hidden_layers"] = 1024;
        c.erase("layer_types");
    });
    EXPECT_GE(count_, 300);
}

TEST_F(BadInputTest, RandomBytes) {
    copyFixture("gpt-oss-bf16", folder_);
    const base::PhiloxKey key = base::philoxKey(7, 0);
    std::uint64_t round = 0;
    for (const char* name : {"config.json", "model.safetensors.index.json", "generation_config.json",
                             "model-00002-of-00004.safetensors"}) {
        const std::string good = readBytes(folder_.file(name));
        const std::size_t reach = std::min<std::size_t>(good.size(), 2000); // the header of a safetensors file
        for (int i = 0; i < 60; ++i) {
            std::string bytes = good;
            const auto bits = base::philox4x32(key, round++, 0);
            for (int flip = 0; flip <= i % 3; ++flip) {
                const auto at = base::philox4x32(key, round, static_cast<std::uint64_t>(flip) + 1);
                bytes[at[0] % reach] = static_cast<char>(at[1]);
            }
            check(name, bytes, "flips " + std::to_string(bits[0]), Expected::EitherWay);
        }
    }
    EXPECT_EQ(count_, 240);
}

} // namespace
} // namespace vitrine::engine

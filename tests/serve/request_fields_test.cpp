// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/request_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace vitrine::app {
namespace {

using nlohmann::json;

bool standsIn(const RequestField& field, Endpoint endpoint) {
    return field.endpoint == FieldOf::Both || (field.endpoint == FieldOf::Chat) == (endpoint == Endpoint::Chat);
}

/// The message of the refusal; empty: the body was taken.
std::string refusalOf(const json& body, Endpoint endpoint, const std::string& param) {
    try {
        checkRequestFields(body, endpoint);
        return {};
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 400);
        EXPECT_EQ(error.param, param);
        return error.message;
    }
}

std::string refusalOf(std::string_view name, const json& value, Endpoint endpoint) {
    return refusalOf({{std::string(name), value}}, endpoint, std::string(name));
}

TEST(RequestFields, EveryRowDoesWhatItSays) {
    std::set<std::pair<std::string_view, Endpoint>> seen;
    for (const RequestField& field : requestFields()) {
        SCOPED_TRACE(field.name);
        EXPECT_EQ(field.reason.empty(), field.use == FieldUse::Used);
        for (const Endpoint endpoint : {Endpoint::Chat, Endpoint::Completions}) {
            EXPECT_EQ(refusalOf(field.name, nullptr, endpoint), "");
            if (!standsIn(field, endpoint)) {
                continue;
            }
            EXPECT_TRUE(seen.emplace(field.name, endpoint).second) << "a second row";
            const std::string refusal = refusalOf(field.name, "a value of no use", endpoint);
            if (field.use != FieldUse::Refused) {
                EXPECT_EQ(refusal, "");
                continue;
            }
            EXPECT_EQ(refusal, std::string(field.name) + ": " + std::string(field.reason));
            for (const json& neutral : json::parse(field.neutral)) {
                EXPECT_EQ(refusalOf(field.name, neutral, endpoint), "") << neutral;
            }
        }
    }
}

TEST(RequestFields, WhatIsUnknownOrOfTheOtherEndpointIsNamed) {
    EXPECT_THAT(refusalOf("temprature", 1, Endpoint::Chat), testing::StartsWith("temprature: unknown"));
    EXPECT_EQ(refusalOf("messages", json::array(), Endpoint::Completions), "messages: only for /v1/chat/completions");
    EXPECT_EQ(refusalOf("prompt", "x", Endpoint::Chat), "prompt: only for /v1/completions");
    EXPECT_LT(refusalOf({{std::string(100'000, 'x'), 1}}, Endpoint::Chat, std::string(64, 'x')).size(), 200U);
}

TEST(RequestFields, NeutralValuesOfNumbersMayHaveAPoint) {
    EXPECT_EQ(refusalOf("length_penalty", 1.0, Endpoint::Chat), "");
    EXPECT_NE(refusalOf("length_penalty", 0.5, Endpoint::Chat), "");
    EXPECT_NE(refusalOf("use_beam_search", true, Endpoint::Completions), "");
    EXPECT_NE(refusalOf("guided_json", {{"type", "object"}}, Endpoint::Chat), "");
}

TEST(RequestFields, EndpointsMayDiffer) {
    EXPECT_EQ(refusalOf("add_special_tokens", false, Endpoint::Chat), "");
    EXPECT_NE(refusalOf("add_special_tokens", false, Endpoint::Completions), "");
    EXPECT_EQ(refusalOf("add_special_tokens", true, Endpoint::Completions), "");
    EXPECT_NE(refusalOf("add_special_tokens", true, Endpoint::Chat), "");
}

TEST(RequestFields, OptionsOfStreamsAreLookedAtToo) {
    const auto refusal = [](const json& options) {
        return refusalOf({{"stream_options", options}}, Endpoint::Chat, "stream_options");
    };
    EXPECT_EQ(refusal({{"include_usage", true}, {"include_obfuscation", true}}), "");
    EXPECT_EQ(refusal({{"continuous_usage_stats", false}}), "");
    EXPECT_THAT(refusal({{"continuous_usage_stats", true}}),
                testing::StartsWith("stream_options.continuous_usage_stats: not supported"));
    EXPECT_THAT(refusal({{"chunks", 1}}), testing::StartsWith("stream_options.chunks: unknown"));
}

} // namespace
} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/serve_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>

namespace vitrine::app {
namespace {

using testing::HasSubstr;

TEST(ServeMetrics, HistogramsAddUpFromBucketToBucket) {
    Histogram histogram({0.5, 1});
    for (const double value : {0.25, 0.5, 0.75, 8.0}) {
        histogram.add(value);
    }
    EXPECT_EQ(histogram.lines("x"), "x_bucket{le=\"0.5\"} 2\nx_bucket{le=\"1\"} 3\nx_bucket{le=\"+Inf\"} 4\n"
                                    "x_sum 9.5\nx_count 4\n");
}

TEST(ServeMetrics, EveryLineIsOfTheFormatAndSaysWhatWasCounted) {
    ServeMetrics metrics;
    metrics.answered(200);
    metrics.answered(200);
    metrics.answered(404);
    engine::BatchResult done;
    done.result.finish = engine::FinishReason::Length;
    done.result.promptTokens = 7;
    done.result.ids = {1, 2, 3};
    done.arrival = 1'000'000'000;
    done.firstToken = 1'250'000'000;
    done.end = 2'250'000'000;
    metrics.ended(done);
    engine::BatchResult refused;
    refused.refusal = "no";
    metrics.ended(refused);
    engine::ServeStatus status;
    status.running = 3;
    status.waiting = 2;
    status.generated = 40;
    status.pages.used = 5;
    const std::string text = metrics.text(status, 9);
    for (const char* line :
         {"vitrine_http_responses_total{status=\"200\"} 2\n", "vitrine_http_responses_total{status=\"404\"} 1\n",
          "vitrine_requests_total{reason=\"length\"} 1\n", "vitrine_requests_total{reason=\"refused\"} 1\n",
          "vitrine_prompt_tokens_total 7\n", "vitrine_generated_tokens_total 40\n", "vitrine_requests_running 3\n",
          "vitrine_requests_waiting 2\n", "vitrine_connections 9\n", "vitrine_kv_pages{state=\"used\"} 5\n",
          "vitrine_time_to_first_token_seconds_sum 0.25\n", "vitrine_time_to_first_token_seconds_count 1\n",
          "vitrine_time_per_output_token_seconds_sum 0.5\n", "vitrine_request_seconds_bucket{le=\"2.5\"} 1\n"}) {
        EXPECT_THAT(text, HasSubstr(line));
    }
    const std::regex sample(R"([a-z_]+(\{[a-z]+="[^"\\]+"\})? -?[0-9.e+-]+)");
    const std::regex comment(R"(# (HELP [a-z_]+ [A-Z].*|TYPE [a-z_]+ (counter|gauge|histogram)))");
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        EXPECT_TRUE(std::regex_match(line, line.starts_with('#') ? comment : sample)) << line;
    }
    EXPECT_EQ(text.back(), '\n');
}

} // namespace
} // namespace vitrine::app

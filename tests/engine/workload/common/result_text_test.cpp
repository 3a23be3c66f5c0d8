// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/result_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(ResultText, NamesRecordsThatTheSessionDoesNotHold) {
    const std::string sentence = "lost      12,345 records: they came faster than the session could keep them, so its "
                                 "timeline has gaps\n";
    for (const char* workload : {"generate", "batch", "logits"}) {
        const Experiment experiment = Experiment::parse(
            {{"vitrine", 1}, {"workload", workload}, {"model", "synthetic:tiny-llama"}}, "experiment");
        json metrics{{"peak_bytes", 1024}};
        EXPECT_THAT(resultText(experiment, metrics), Not(HasSubstr("lost"))) << workload;
        metrics["lost_records"] = 12345;
        const std::string text = resultText(experiment, metrics);
        EXPECT_THAT(text, EndsWith(sentence)) << workload;
        EXPECT_THAT(text, Not(HasSubstr("lost_records"))) << workload;
    }
}

} // namespace
} // namespace vitrine::engine

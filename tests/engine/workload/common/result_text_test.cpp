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
    // A workload whose streamed text is its result, and one whose results are listed.
    for (const json& spec :
         {json{{"workload", "generate"}, {"prompt_length", 4}}, json{{"workload", "synthesize"}, {"output", "x"}}}) {
        json whole = spec;
        whole.update({{"vitrine", 1}, {"model", "synthetic:tiny-llama"}});
        const Experiment experiment = Experiment::parse(whole, "experiment");
        json metrics{{"peak_bytes", 1024}};
        EXPECT_THAT(resultText(experiment, metrics), Not(HasSubstr("lost"))) << spec;
        metrics["lost_records"] = 12345;
        const std::string text = resultText(experiment, metrics);
        EXPECT_THAT(text, EndsWith(sentence)) << spec;
        EXPECT_THAT(text, Not(HasSubstr("lost_records"))) << spec;
    }
}

} // namespace
} // namespace vitrine::engine

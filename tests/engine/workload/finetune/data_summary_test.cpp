// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/data_summary.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "engine/training/passes/document_mask.h"
#include "engine/workload/finetune/finetune_data.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

class DataSummaryTest : public testing::Test {
protected:
    /// Rows of tokens: a bad line, a row that trains nothing, a duplicate, two that are too long for 8 tokens.
    void SetUp() override {
        std::ofstream file(path_);
        file << "{\"tokens\": [1, 2, 3, 4]}\n"
             << "{\"tokens\": [1, 2\n"
             << "{\"tokens\": [5, 6], \"trained\": [1, 0]}\n"
             << "{\"tokens\": [1, 2, 3, 4], \"trained\": [0, 1, 1, 1]}\n"
             << "{\"tokens\": [9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8], \"trained\": [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]}\n"
             << "{\"tokens\": [9, 9, 9, 9, 9, 9, 9, 9, 9, 9], \"trained\": [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]}\n";
        for (int i = 0; i < 12; ++i) {
            file << Json{{"tokens", {10 + i, 3, 4, 5 + i % 3}}}.dump() << '\n';
        }
    }

    Experiment experiment(Json more = Json::object()) const {
        more["vitrine"] = 1;
        more["workload"] = "finetune";
        more["model"] = test::fixture("llama");
        more["data"] = path_;
        more["sequence_length"] = 8;
        return Experiment::parse(more, "experiment");
    }

    Experiment withoutLength(Json more = Json::object()) const {
        Experiment out = experiment(std::move(more));
        out.unset("sequence_length");
        return out;
    }

    struct Both {
        PreparedData data;
        DataSummary summary;
    };
    /// `context`: of the model; 0: its own.
    Both both(const Experiment& spec, std::int64_t context = 0) const {
        Json metrics;
        const engine::Run run{spec, sinks_, {}, metrics};
        ModelSource source = openSource(run);
        source.config.maxPositions = context > 0 ? context : source.config.maxPositions;
        Both out{prepareData(run, source), {}};
        out.summary = summarizeData(out.data, sequencesOfStep(spec, static_cast<std::int64_t>(out.data.packed.size())));
        return out;
    }

    test::TempFolder folder_;
    std::string path_ = folder_.path() + "/rows.jsonl";
    WorkloadSinks sinks_;
};

TEST_F(DataSummaryTest, RowsAddUp) {
    const DataSummary s = both(experiment({{"validation", 0.2}})).summary;
    EXPECT_EQ(s.rows, 18);
    EXPECT_EQ(s.unreadable, 1);
    EXPECT_EQ(s.noAnswer, 1);
    EXPECT_EQ(s.duplicates, 1);
    EXPECT_EQ(s.used + s.unreadable + s.noAnswer + s.duplicates + s.tooLong, s.rows);
    EXPECT_EQ(s.trainRows + s.validationRows, s.used);
    EXPECT_EQ(s.kept + s.lost, s.tokens);
    EXPECT_EQ(s.lost, 3 + 2);
    ASSERT_EQ(s.cut.size(), 2U);
    EXPECT_EQ(s.cut[0].line, 5);
    EXPECT_EQ(s.cut[0].lostTrained, 3);
    EXPECT_EQ(s.keepNoAnswer, 1);
    EXPECT_EQ(s.longestLine, 5);
    std::int64_t inBins = 0;
    for (const LengthBin& bin : s.lengths) {
        inBins += bin.rows;
        EXPECT_LT(bin.from, bin.to);
    }
    EXPECT_EQ(inBins, s.used);
}

TEST_F(DataSummaryTest, WithoutALengthRowsArePackedIntoTheContextAndNoneIsCut) {
    const auto [data, s] = both(withoutLength());
    EXPECT_TRUE(data.packs);
    EXPECT_EQ(s.sequences, 1) << "the model takes more tokens than all rows have";
    EXPECT_EQ(s.cutRows, 0);
    EXPECT_EQ(s.padding, 0);
    EXPECT_EQ(s.sequenceTokens, s.tokens);
    const DataSummary narrow = both(withoutLength(), 16).summary;
    EXPECT_GT(narrow.sequences, 1);
    EXPECT_LT(narrow.sequences, narrow.trainRows);
    EXPECT_EQ(narrow.length, 16);
    const DataSummary tiny = both(withoutLength(), 5).summary;
    EXPECT_EQ(tiny.length, 11) << "the longest row";
    EXPECT_EQ(tiny.cutRows, 0);
}

TEST_F(DataSummaryTest, WithoutPackingARowIsASequence) {
    const auto [data, s] = both(withoutLength({{"pack", false}}));
    EXPECT_FALSE(data.packs);
    EXPECT_EQ(s.sequences, s.trainRows);
    EXPECT_EQ(s.length, 11);
}

TEST_F(DataSummaryTest, RowsOfAnArrayAreNamedByTheirNumber) {
    std::ofstream(path_) << "[{\"tokens\": [1, 2, 3]}, {\"tokens\": 4},\n {\"tokens\": [5, 6, 7, 8]}]\n";
    const auto [data, s] = both(experiment());
    EXPECT_EQ(s.used, 2);
    EXPECT_TRUE(s.inArray);
    EXPECT_EQ(data.row(1).tokens, (std::vector<std::int32_t>{5, 6, 7, 8}));
    const std::string text = dataSummaryText(s);
    EXPECT_NE(text.find("row 2"), std::string::npos) << text;
    EXPECT_NE(text.find("row 3"), std::string::npos) << text;
    EXPECT_EQ(text.find("line"), std::string::npos) << text;
}

TEST_F(DataSummaryTest, PositionsOfSequencesAddUp) {
    const auto [data, s] = both(experiment());
    std::int64_t trained = 0, untrained = 0;
    for (std::size_t i = 0; i < data.packed.size(); ++i) {
        const SequenceLayout layout = sequenceLayout(data, i);
        std::int64_t begin = 0;
        for (const PlacedRow& row : layout.rows) {
            EXPECT_EQ(row.begin, begin);
            for (const LabelRun& run : row.labels) {
                EXPECT_EQ(run.begin, begin);
                begin += run.count;
                (run.trained ? trained : untrained) += run.count;
            }
        }
        EXPECT_EQ(begin, layout.tokens);
    }
    EXPECT_EQ(trained + untrained + s.padding, s.sequences * s.length);
    EXPECT_EQ(trained, s.sequenceTrained);
    EXPECT_EQ(trained, s.trained); // without validation, and the row that keeps no answer trains nothing
}

/// The first epoch of the trainer has the sequences of the summary, each once, id by id.
TEST_F(DataSummaryTest, TheTrainerGetsWhatIsShown) {
    const Experiment spec = experiment({{"validation", 0.2}, {"batch", 1}});
    const auto [data, s] = both(spec);
    Json metrics;
    const engine::Run run{spec, sinks_, {}, metrics};
    FinetuneData trainer(run, openSource(run));
    ASSERT_EQ(trainer.steps(), s.stepsOfEpoch);
    using Sequence = std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>;
    std::vector<Sequence> shown, taken;
    EXPECT_TRUE(data.trainingTokens.empty()) << "rows are read again when somebody looks at them";
    for (std::size_t i = 0; i < data.packed.size(); ++i) {
        std::vector<TrainingRow> rows;
        for (const std::int32_t row : data.packed.sequence(i)) {
            rows.push_back(data.row(row));
        }
        const PackingResult packed = packRows(rows, data.packing());
        ASSERT_EQ(packed.sequences.size(), 1U);
        shown.emplace_back(packed.sequences[0].tokens, packed.sequences[0].targets);
        EXPECT_EQ(s.all[i].tokens, packed.totalTokens);
        EXPECT_EQ(s.all[i].trained, packed.trainedTokens);
    }
    for (std::int64_t step = 1; step <= trainer.steps(); ++step) {
        for (const TrainingBatch& batch : trainer.batches(step)) {
            taken.emplace_back(batch.tokens, batch.targets);
        }
    }
    std::sort(shown.begin(), shown.end());
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(shown, taken);
    EXPECT_EQ(static_cast<std::int64_t>(trainer.validation().size()), s.validationSequences);
}

TEST_F(DataSummaryTest, TheSeedChangesSplitAndOrderButNoCounts) {
    const auto one = both(experiment({{"validation", 0.3}, {"seed", 1}}));
    const auto other = both(experiment({{"validation", 0.3}, {"seed", 2}}));
    EXPECT_NE(one.data.training.front().line + one.data.training.back().line * 100,
              other.data.training.front().line + other.data.training.back().line * 100);
    EXPECT_EQ(one.summary.used, other.summary.used);
    EXPECT_EQ(one.summary.tokens, other.summary.tokens);
    EXPECT_EQ(one.summary.trainRows, other.summary.trainRows);
}

TEST_F(DataSummaryTest, TheTableIsACsvFileWithPlainNumbers) {
    const std::string csv = dataSummaryCsv(both(experiment()).summary);
    EXPECT_TRUE(csv.starts_with("what,value,note\n\"rows used\",15,\"of 18\"\n")) << csv;
    EXPECT_NE(csv.find("\"rows cut\",2,\"lines 5, 6\"\n"), std::string::npos) << csv;
    EXPECT_NE(csv.find("\"fill\",0."), std::string::npos) << csv;
}

TEST_F(DataSummaryTest, ARowThatHasChangedSinceIsNotShown) {
    const PreparedData data = both(experiment()).data;
    EXPECT_EQ(data.row(0).tokens, (std::vector<std::int32_t>{1, 2, 3, 4}));
    std::ofstream(path_) << "{\"tokens\": [1, 2, 3, 5]}\n";
    EXPECT_THROW(data.row(0), base::BadInput);
}

TEST_F(DataSummaryTest, ReadingMayEndEarly) {
    const Experiment spec = experiment();
    Json metrics;
    const engine::Run run{spec, sinks_, {}, metrics};
    PrepareWatch watch;
    std::int64_t seen = 0;
    watch.read = [&](const DataRows& rows) { seen = rows.rows(); };
    watch.enough = [&] { return seen >= 8; };
    const PreparedData data = prepareData(run, openSource(run), watch);
    EXPECT_TRUE(data.stopped);
    EXPECT_EQ(data.fileRows, 8);
}

TEST_F(DataSummaryTest, BlocksAreThoseOfTheDocuments) {
    const auto [data, s] = both(experiment());
    const kernels::BlockMask mask = documentBlocks({128, 256, 20}, 0);
    // One block of 128 x 128 is partial, the causal triangle of two more has one full block, the last is partial.
    EXPECT_EQ(mask.full, 1);
    EXPECT_EQ(mask.partial, 1 + 2 + 1);
    EXPECT_EQ(mask.empty, 16 - 5);
    EXPECT_EQ(sequenceBlocks(data, 0, 0).partial, 1);
}

TEST_F(DataSummaryTest, AFileWithoutARowSaysWhatIsWrongWithTheFirst) {
    std::ofstream(path_) << "{\"txt\": 1}\n{\"txt\": 2}\n";
    try {
        both(experiment());
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("line 1: "), std::string::npos) << error.message();
    }
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Scales, cells, tables and sentences of the Precision lab.
#include <QAbstractItemModelTester>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/precision/invented_lab.h"
#include "ui/models/precision/change_step.h"
#include "ui/models/precision/error_scale.h"
#include "ui/models/precision/group_columns.h"
#include "ui/models/precision/group_words.h"
#include "ui/models/precision/keep_list.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/models/precision/precision_map.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/models/precision/token_words.h"

using namespace vitrine;
using ui::ErrorMeasure;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::shared_ptr<ui::PrecisionData> labData(const test::LabShape& shape = {4, 4, 60}) {
    auto data = std::make_shared<ui::PrecisionData>();
    data->result = test::inventedLab(shape);
    data->model = "qwen3-30b";
    return data;
}

} // namespace

class PrecisionModelsTest final : public QObject {
    Q_OBJECT

private slots:
    void aMeanIsOneOfSquaredErrors() {
        const std::vector<float> ratios = {10, 20, kNan};
        QVERIFY(std::abs(ui::meanError(ErrorMeasure::Snr, ratios) - -10 * std::log10((0.1 + 0.01) / 2)) < 1e-6);
        const std::vector<float> exact = {20, kInfinity};
        QVERIFY(std::abs(ui::meanError(ErrorMeasure::Snr, exact) - (20 + 10 * std::log10(2))) < 1e-5);
        const std::vector<float> cosines = {0.99F, 0.97F};
        QVERIFY(std::abs(ui::meanError(ErrorMeasure::Cosine, cosines) - 0.98) < 1e-6);
        const std::vector<float> unknown = {kNan};
        QVERIFY(std::isnan(ui::meanError(ErrorMeasure::Mse, unknown)));
        QCOMPARE(ui::worstError(ErrorMeasure::Snr, ratios), 10.0);
        QVERIFY(std::isnan(ui::worstError(ErrorMeasure::Snr, unknown)));
    }

    void stepsAreHalfADecibelAndTheEndsCollectTheRest() {
        const ui::ErrorScale scale; // from 20.5 dB down
        QCOMPARE(scale.stepOf(25), 0);
        QCOMPARE(scale.stepOf(20.2), 0);
        QCOMPARE(scale.stepOf(19.9), 1);
        QCOMPARE(scale.stepOf(15.9), 9);
        QCOMPARE(scale.stepOf(-3), 9);
        QCOMPARE(scale.stepOf(kInfinity), 0);
        QCOMPARE(scale.stepOf(kNan), -1);
        QCOMPARE(scale.stepText(0), QStringLiteral("20.0"));
        QCOMPARE(scale.stepText(8), QStringLiteral("16.0"));
        QCOMPARE(scale.stepText(9), QStringLiteral("less"));
        QVERIFY(scale.worse(16, 17));
        QVERIFY(!scale.worse(17, 17));
    }

    void aScaleRunsFromTheBestRoleToTheWorst() {
        std::vector<float> good(101), bad(101);
        std::iota(good.begin(), good.end(), 0.0F);
        for (std::size_t i = 0; i < good.size(); ++i) {
            bad[i] = 16 + good[i] / 100; // 16 to 17 dB
            good[i] = 19 + good[i] / 100;
        }
        const ui::ErrorScale scale = ui::errorScale(ErrorMeasure::Snr, {good, bad, {}, {kNan, kInfinity}});
        QCOMPARE(scale.least, -20.0); // 19.95 dB, up to the grid
        QCOMPARE(scale.width, 0.5);
        // A range that ten steps of half a decibel do not cover has wider ones.
        const ui::ErrorScale wide = ui::errorScale(ErrorMeasure::Snr, {{40}, {10}});
        QCOMPARE(wide.width, 3.0);
        QCOMPARE(wide.stepOf(10.1), 9);
        QCOMPARE(ui::errorScale(ErrorMeasure::Snr, {}).least, ui::ErrorScale().least);
        const ui::ErrorScale squares = ui::errorScale(ErrorMeasure::Mse, {{1.1e-6F}, {1e-5F}});
        QCOMPARE(squares.stepOf(0), 0);
        QCOMPARE(squares.stepOf(1), 9);
        QCOMPARE(squares.stepText(9), QStringLiteral("more"));
        QCOMPARE(squares.stepText(8), QStringLiteral("7.9e−6")); // -51 dB
        QCOMPARE(squares.valueText(0.00025), QStringLiteral("2.5e−4"));
    }

    void numbersHaveAMinusAndSeparators() {
        QCOMPARE(ui::decimalText(-1234567.5, 2), QStringLiteral("−1,234,567.50"));
        QCOMPARE(ui::decimalText(-0.001, 2), QStringLiteral("0.00"));
        QCOMPARE(ui::decimalText(999, 0), QStringLiteral("999"));
        QCOMPARE(ui::decimalText(kNan, 1), QStringLiteral("–"));
        QCOMPARE(ui::signedDecimalText(2208, 0), QStringLiteral("+2,208"));
        QCOMPARE(ui::signedDecimalText(0, 0), QStringLiteral("0"));
        const ui::NumberTicks ticks = ui::numberTicks(-0.16, 0.16, 4);
        QCOMPARE(ticks.values.size(), std::size_t(3));
        QVERIFY(std::abs(ticks.values[0] + 0.1) < 1e-12 && ticks.decimals == 1);
        QVERIFY(ui::numberTicks(1, 1, 4).values.empty());
        QCOMPARE(ui::scientificText(-1.25e-4), QStringLiteral("\u22121.25e\u221204"));
        QVERIFY(ui::numberTicks(0, kInfinity, 4).values.empty());
        QCOMPARE(ui::unitText(-3), QStringLiteral("10⁻³"));
        QCOMPARE(ui::unitPower(0.0194), -3);
        QCOMPARE(ui::unitPower(0), 0);
        QCOMPARE(ui::unitPower(12), 0);
    }

    void columnsCoverAllGroupsOnce() {
        std::vector<float> errors(1003);
        std::iota(errors.begin(), errors.end(), 0.0F);
        const auto columns = ui::groupColumns(errors, 100);
        QCOMPARE(columns.size(), std::size_t(100));
        std::int64_t next = 0;
        for (const ui::GroupColumn& column : columns) {
            QCOMPARE(column.first, next);
            QCOMPARE(column.worst, column.last - 1);
            QVERIFY(column.low <= column.median && column.median <= column.high && column.high <= column.largest);
            next = column.last;
        }
        QCOMPARE(next, std::int64_t(1003));
        QCOMPARE(ui::groupColumns(std::vector<float>{1, 2}, 100).size(), std::size_t(2));
        QVERIFY(ui::groupColumns({}, 100).empty());
    }

    void theRuleOfAFormatIsInWords() {
        QCOMPARE(ui::ruleWords("int4:32"), QStringLiteral("Rule: s = max(|w|) / 7.5, q = round(w / s), \u22128 to 7"));
        QCOMPARE(ui::ruleWords("bf16"), QString());
        QCOMPARE(ui::ruleWords("int5:3"), QString());
    }

    void aLonelyWeightIsNamed() {
        const test::InventedMatrix& matrix = test::inventedMatrix();
        const std::size_t worst = matrix.rows * 59 / 100 * (matrix.columns / matrix.group) + 442 / matrix.group;
        engine::GroupDetail group = test::lab::groupDetail(matrix.rounded, matrix.columns, matrix.group, worst);
        QVERIFY(ui::evenLevels(group));
        QVERIFY(ui::lonelyWords(group).startsWith(QStringLiteral("weight 442 of the row sets the scale: ")));
        QVERIFY(ui::groupTitle(group).contains(QStringLiteral("inputs 416 to 447")));
        QVERIFY(ui::groupScaleWords(group).startsWith(QStringLiteral("scale s = 0.97")));
        group.values[0] = group.values[442 - 416] / 4; // four times is not more than four times
        QVERIFY(ui::lonelyWords(group).isEmpty());
        QVERIFY(ui::lonelyWords({}).isEmpty());
        QVERIFY(!ui::worstWeight({}).has_value());
        group.levels = {-6, -4, -3, -2, -1.5F, -1, -.5F, 0, .5F, 1, 1.5F, 2, 3, 4, 6};
        group.step = .5F;
        QVERIFY(!ui::evenLevels(group));
        QVERIFY(ui::groupScaleWords(group).startsWith(QStringLiteral("15 levels")));
    }

    void cellsAreRolesByLayersAndExpertsInOne() {
        const auto data = labData({4, 4, 0});
        const ui::PrecisionMap map = ui::precisionMap(data->result);
        QCOMPARE(map.layers, 4);
        QCOMPARE(map.roles, (std::vector<std::string>{"q", "k", "v", "o", "gate", "up", "down", "router"}));
        QCOMPARE(map.cell(6, 2).weights.size(), std::size_t(4));
        QCOMPARE(map.experts(6), std::size_t(4));
        QCOMPARE(map.experts(0), std::size_t(1));
        const auto means = ui::cellMeans(data->result, map, ErrorMeasure::Snr, 4);
        const auto errors = ui::cellErrors(data->result, ErrorMeasure::Snr, 4, map.cell(6, 2));
        QVERIFY(std::abs(means[6 * 4 + 2] - ui::meanError(ErrorMeasure::Snr, errors)) < 1e-4);
        QCOMPARE(ui::keptCells(data->result, map, 4)[7 * 4], std::uint8_t(1)); // the router
        QCOMPARE(ui::keptCells(data->result, map, 4)[0], std::uint8_t(0));
        QCOMPARE(ui::keptCells(data->result, map, 0)[7 * 4], std::uint8_t(0)); // all is BF16 there
        const auto worst = ui::worstWeightOf(data->result, 4, map.cell(6, 2));
        QCOMPARE(ui::weightError(data->result, ErrorMeasure::Snr, 4, *worst),
                 static_cast<float>(ui::worstError(ErrorMeasure::Snr, errors)));
        const QString words = ui::cellWords(data->result, map, ErrorMeasure::Snr, 4, 6, 2);
        QVERIFY(words.startsWith(QStringLiteral("Layer 2, down: ")));
        QVERIFY(words.contains(QStringLiteral("over 4 experts")));
        QVERIFY(ui::cellWords(data->result, map, ErrorMeasure::Snr, 4, 7, 0).contains(QStringLiteral("kept in BF16")));
        QCOMPARE(ui::firstFormat(data->result), std::size_t(2));
    }

    void hostileResultsMakeSmallMaps() {
        engine::PrecisionResult result;
        QCOMPARE(ui::precisionMap(result).cells.size(), std::size_t(0));
        QCOMPARE(ui::firstFormat(result), std::size_t(0));
        engine::LabWeight far;
        far.layer = 2'000'000'000;
        far.role = "q";
        result.weights = {far};
        QCOMPARE(ui::precisionMap(result).cells.size(), std::size_t(0));
        result.formats.resize(2);
        result.effects.resize(2);
        result.effects[1].packable = false;
        QVERIFY(std::isnan(ui::weightError(result, ErrorMeasure::Snr, 1, 0)));
        QVERIFY(std::isinf(ui::weightError(result, ErrorMeasure::Snr, 0, 0)));
    }

    void tablesHaveARowForEachFormatAndGroup() {
        auto data = labData();
        data->measuredRates = {526.0, std::nullopt};
        const ui::FlatTreePtr formats = ui::formatTable(*data);
        QCOMPARE(formats->nodes.size(), std::size_t(6));
        QCOMPARE(formats->nodes[0].cells[3].text, QStringLiteral("0"));
        QCOMPARE(formats->nodes[4].cells[3].text, QStringLiteral("7.43"));
        QCOMPARE(formats->nodes[4].cells[4].text, QStringLiteral("97.31"));
        QCOMPARE(formats->nodes[0].cells[6].text, QStringLiteral("526"));
        QCOMPARE(formats->nodes[1].cells[6].text, QStringLiteral("–"));
        ui::FlatTreeModel model;
        QAbstractItemModelTester tester(&model);
        model.setTree(ui::worstGroupTable(test::inventedMatrix().detail));
        QCOMPARE(model.rowCount(), 32);
        model.setTree(ui::mapTable(data->result, ui::precisionMap(data->result), 4));
        QCOMPARE(model.rowCount(), 8 * 4);
        ui::PrecisionTensor tensor;
        tensor.formats = {{"int4:32", "INT4, g32", true, 4.5, 900, {}}, {"bf16", "BF16", true, 16, 3200, {}}};
        const ui::FlatTreePtr choices = ui::choiceTable(tensor, QStringLiteral("INT4, g32"));
        QCOMPARE(choices->nodes[0].cells[0].text, QStringLiteral("BF16")); // the most bits first
        QCOMPARE(choices->nodes[1].cells[3].text, QStringLiteral("="));
        QCOMPARE(choices->nodes[0].cells[3].text, QStringLiteral("+2"));
    }

    void tokensSayWhatBothFormatsThink() {
        const auto data = labData();
        const ui::TokenWords words = ui::tokenWords(data->result, 4, 0, 5);
        const float change = data->result.token(4, 5).logprob - data->result.token(0, 5).logprob;
        QCOMPARE(words.difference, QStringLiteral("difference %1").arg(ui::signedDecimalText(change, 2)));
        QCOMPARE(words.next, QStringLiteral("Next best in both: “4”"));
        QCOMPARE(ui::tokenChange(data->result, 4, 0, 0), 0.0F);
        QCOMPARE(ui::changeStep(-0.44), -4);
        QCOMPARE(ui::changeStep(0.1), 2);
        QCOMPARE(ui::changeStep(0.049), 0);
        QCOMPARE(ui::changeStep(kNan), 0);
    }

    void keptRowsSumUp() {
        const auto data = labData();
        const auto rows = ui::keepRows(data->result, 4);
        QCOMPARE(rows.size(), std::size_t(5)); // embedding, router, three roles
        QVERIFY(!rows[1].klSaved && rows[1].name == QStringLiteral("router"));
        std::vector<bool> checked(rows.size(), true);
        const ui::KeepSum sum = ui::keepSum(data->result, 4, rows, checked);
        QVERIFY(std::abs(*sum.kl - (.00743 - .00021 - .0031 - .00071)) < 1e-9);
        QVERIFY(sum.bytes > data->result.formats[4].bytes);
        QVERIFY(!sum.rate.has_value()); // what single parts do to the rate is not known
        QVERIFY(ui::keepRows(data->result, 0).empty());
        QVERIFY(ui::keepRows(data->result, 99).empty());
    }

    void layersWithinACheckedRoleCountOnce() {
        auto data = std::make_shared<ui::PrecisionData>(*labData());
        data->result.formats[4].plannedRate = 1000;
        data->result.keep = {{4, {"down"}, 1000, .004, .003, 800},
                             {4, {"down", 4, 5}, 100, .006, .001, 950},
                             {4, {"k", 0, 0}, 10, .0073, .0001, 990}};
        const auto rows = ui::keepRows(data->result, 4); // embedding, router and these
        QCOMPARE(rows[3].name, QStringLiteral("down, layers 4 and 5"));
        QVERIFY(rows[3].pattern.starts_with("re:"));
        const auto sum = [&](bool whole, bool layers, bool k) {
            return ui::keepSum(data->result, 4, rows, {true, true, whole, layers, k});
        };
        const std::uint64_t bytes = data->result.formats[4].bytes;
        QCOMPARE(sum(true, true, false).bytes, bytes + 1000);
        QCOMPARE(sum(false, true, true).bytes, bytes + 110);
        QVERIFY(std::abs(*sum(true, true, true).kl - (.00743 - .003 - .0001)) < 1e-12);
        QCOMPARE(*sum(false, false, false).change, 0.);
        QVERIFY(std::abs(*sum(true, true, false).rate - 800) < 1e-6);
        QVERIFY(std::abs(*sum(true, false, false).change + .2) < 1e-9);
        data->result.keep.resize(1);
        data->result.keep.resize(50, {4, {"o"}, 1, .007, .0001, std::nullopt});
        QCOMPARE(ui::keepRows(data->result, 4).size(), ui::kMostKeepRows);
    }

    void experimentsTakeThePatterns() {
        const auto data = labData();
        const auto object = [](const QString& json) { return QJsonDocument::fromJson(json.toUtf8()).object(); };
        const std::string options = R"({"vitrine": 1, "workload": "precision", "ignore": ["a"]})";
        QCOMPARE(object(ui::measureExperiment(options, {"a", "b"}))[QStringLiteral("ignore")].toArray(),
                 (QJsonArray{QStringLiteral("a"), QStringLiteral("b")}));
        QVERIFY(object(ui::keepEffectsExperiment(options))[QStringLiteral("keep_effects")].toBool());
        const QJsonObject convert = object(ui::convertExperiment(*data, 2, {}));
        QCOMPARE(convert[QStringLiteral("to")].toString(), QStringLiteral("mxfp4"));
        QVERIFY(!convert.contains(QStringLiteral("group_size")));
        QVERIFY(!convert.contains(QStringLiteral("ignore")));
    }
};

QTEST_MAIN(PrecisionModelsTest)
#include "precision_models_test.moc"

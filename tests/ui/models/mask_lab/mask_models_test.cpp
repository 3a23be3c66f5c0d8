// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Models of the Mask Lab against numbers that are known otherwise.
#include <QTest>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/experiment.h"
#include "ui/models/mask_lab/mask_catalogue.h"
#include "ui/models/mask_lab/mask_lab.h"
#include "ui/models/mask_lab/mask_reasons.h"

using namespace vitrine;
using namespace vitrine::ui;

class MaskModelsTest final : public QObject {
    Q_OBJECT

    static MaskSizes sizesOf(std::int64_t tokens, std::int64_t block = 128) {
        MaskSizes sizes;
        sizes.queries = sizes.keys = tokens;
        sizes.block = block;
        return sizes;
    }

    static void wait(const MaskLab& lab) { QTRY_VERIFY_WITH_TIMEOUT(lab.settled(), 60'000); }

    static const MaskReason& reasonWith(const MaskReasons& reasons, const QString& text) {
        for (const MaskReason& reason : reasons.reasons) {
            if (reason.text.contains(text)) {
                return reason;
            }
        }
        qFatal("no such reason");
    }

private slots:
    void causalHasItsNumbers() {
        // As `vitrine mask --mask causal --q-len 16384 --kv-len 16384` prints them.
        MaskLab lab;
        lab.setSource(0, causalSource());
        wait(lab);
        const MaskLab::Side& side = lab.side(0);
        QVERIFY(side.map != nullptr);
        QCOMPARE(side.map->blocks->full, 8128);
        QCOMPARE(side.map->blocks->partial, 128);
        QCOMPARE(side.map->blockSparsity(), 1 - 8256.0 / 16384);
        QCOMPARE(*side.density, 16384.0 * 16385 / 2 / (16384.0 * 16384));
        QCOMPARE(maskForm(*side.map), QStringLiteral("closed form, no data"));
        QCOMPARE(side.blockSizes.size(), std::size_t(4));
        QCOMPARE(side.blockSizes[3].block, 256);
        QCOMPARE(side.blockSizes[3].computedShare, 2080.0 / 4096);
        QCOMPARE(side.blockSizes[2].denseBytes, std::uint64_t(2 * (128 * 128 + 128) * 4));
        QVERIFY(side.study->title() == QStringLiteral("causal"));
    }

    void exampleIsTheOneOfTheScreen() {
        MaskLab lab;
        lab.setSource(0, exampleSource(16384));
        wait(lab);
        const MaskLab::Side& side = lab.side(0);
        QCOMPARE(side.map->blocks->full + side.map->blocks->partial, 1279);
        QCOMPARE(side.map->blocks->full, 954);
        QCOMPARE(side.study->numbers.size(), std::size_t(1));
        QCOMPARE(side.study->numbers[0].name, QStringLiteral("WINDOW"));
        QCOMPARE(side.study->numbers[0].value, 2048.0);
        QCOMPARE(side.study->captures.size(), std::size_t(1));
        QCOMPARE(side.study->captures[0].lengths.size(), std::size_t(9));
        const auto documents = maskDocuments(side.study->captures[0].lengths, 128);
        QCOMPARE(documents[4].first, 8250);
        QCOMPARE(documents[4].blocks, 4);
        QCOMPARE(documentAt(side.study->captures[0].lengths, 8284), 4);
        const MaskReasons why = maskReasons(side.study->mask.get(), nullptr, {0, 0, 8284}, 8220);
        QVERIFY(!why.allowed);
        QCOMPARE(why.reasons.size(), std::size_t(3));
        const MaskReason& window = reasonWith(why, QStringLiteral("WINDOW"));
        QCOMPARE(window.text, QStringLiteral("q_idx - kv_idx < WINDOW"));
        QCOMPARE(window.values, QStringLiteral("64 < 2,048"));
        QVERIFY(window.holds && !window.decides);
        const MaskReason& causal = reasonWith(why, QStringLiteral("q_idx >= kv_idx"));
        QCOMPARE(causal.values, QStringLiteral("8,284 ≥ 8,220"));
        const MaskReason& document = reasonWith(why, QStringLiteral("doc_id"));
        QCOMPARE(document.values, QStringLiteral("4 is not 3"));
        QVERIFY(document.decides);
        QCOMPARE(lineOfSpan(side.study->mask->program, document.span, side.source.text), 9);
        QVERIFY(why.sentence.contains(QStringLiteral("4 is not 3")));
        QVERIFY(maskReasons(side.study->mask.get(), nullptr, {0, 0, 8300}, 8290).allowed);
    }

    void slidersMakeNoOtherProgram() {
        MaskLab lab;
        lab.setSource(0, exampleSource(16384));
        wait(lab);
        const std::string key = kernels::programKey(lab.side(0).study->mask->program);
        const std::int64_t before = lab.side(0).map->blocks->full;
        lab.setParameter(0, "WINDOW", 256);
        wait(lab);
        QCOMPARE(kernels::programKey(lab.side(0).study->mask->program), key);
        QVERIFY(lab.side(0).map->blocks->full < before);
        QCOMPARE(lab.side(0).study->numbers[0].value, 256.0);
        QCOMPARE(lab.side(0).study->numbers[0].textValue, 2048.0);
    }

    void problemsHaveTheirPlace() {
        MaskSource source;
        source.text = "# ä\ndef m(b, h, q, k):\n    return q >= nothing[k]\n";
        MaskStudyPtr study = studyMask(source, sizesOf(64));
        QVERIFY(study->problem.has_value());
        QCOMPARE(study->problem->line, 3);
        QCOMPARE(study->problem->undefined, QStringLiteral("nothing"));
        const QString text = QString::fromStdString(source.text);
        QCOMPARE(text.mid(study->problem->begin, study->problem->end - study->problem->begin),
                 QStringLiteral("nothing"));
        QVERIFY(study->mask == nullptr);
        source.setCapture("nothing", suggestedCapture("nothing", sizesOf(64)));
        study = studyMask(source, sizesOf(64));
        QVERIFY(!study->problem.has_value());
        source.text = "def m(b, h, q, k):\n    return (q >= k\n";
        study = studyMask(source, sizesOf(64));
        QVERIFY(study->problem.has_value() && study->problem->line >= 2);
        source.text = "def m(b, h, q, k):\n    return q >= k\n";
        source.captures = {"d=documents:-1"};
        study = studyMask(source, sizesOf(64));
        QVERIFY(study->problem.has_value());
        QCOMPARE(study->problem->line, 0);
    }

    void choicesOfExpressions() {
        MaskSource source;
        source.text = "def one(b, h, q, k):\n    return q >= k\n"
                      "def bias(s, b, h, q, k):\n    return s + q - k\n"
                      "def two(b, h, q, k):\n    return q <= k\n";
        MaskStudyPtr study = studyMask(source, sizesOf(64));
        QCOMPARE(QString::fromStdString(study->maskName), QStringLiteral("two"));
        QCOMPARE(QString::fromStdString(study->scoreName), QStringLiteral("bias"));
        QCOMPARE(study->maskOffers, (QStringList{"one", "two"}));
        source.mask = "and_masks(one, sliding_window(3))";
        source.score = kNoMod;
        study = studyMask(source, sizesOf(64));
        QVERIFY(!study->problem.has_value());
        QVERIFY(study->score == nullptr);
        QCOMPARE(study->numbers.front().name, QStringLiteral("window"));
        source.mask = kNoMod;
        study = studyMask(source, sizesOf(64));
        QVERIFY(study->mask == nullptr && !study->problem);
    }

    void badProgramKeepsTheMap() {
        MaskLab lab;
        lab.setSizes(sizesOf(1024));
        lab.setSource(0, causalSource());
        wait(lab);
        const MaskMapPtr map = lab.side(0).map;
        lab.setText(0, "def causal(b, h, q, k):\n    return q >\n");
        wait(lab);
        QVERIFY(lab.side(0).study->problem.has_value());
        QCOMPARE(lab.side(0).map.get(), map.get());
    }

    void millionTokens() {
        MaskLab lab;
        MaskSizes sizes = sizesOf(1 << 20);
        sizes.heads = 4;
        lab.setSizes(sizes);
        MaskSource source = exampleSource(1 << 20);
        lab.setSource(0, source);
        wait(lab);
        QVERIFY(lab.side(0).map != nullptr);
        QCOMPARE(lab.side(0).map->shape().queryBlocks(), 8192);
        QVERIFY(lab.side(0).map->blocks->metadataBytes() < (1U << 22));
        QVERIFY(lab.side(0).density.has_value());
    }

    void newerQuestionsWin() {
        MaskLab lab;
        lab.setSource(0, exampleSource(16384));
        for (int window = 1; window <= 40; ++window) {
            lab.setParameter(0, "WINDOW", window * 10);
        }
        wait(lab);
        QCOMPARE(lab.side(0).study->numbers[0].value, 400.0);
    }

    void sidesChangePlaces() {
        MaskLab lab;
        lab.setSizes(sizesOf(2048));
        lab.setSource(0, exampleSource(2048));
        lab.setSource(1, causalSource());
        wait(lab);
        const MaskMapPtr a = lab.side(0).map, b = lab.side(1).map;
        lab.swapSides();
        wait(lab);
        QCOMPARE(lab.side(0).map.get(), b.get());
        QCOMPARE(lab.side(1).map.get(), a.get());
        lab.setText(0, "def m(b, h, q, k):\n    return q == k\n");
        wait(lab);
        QCOMPARE(lab.side(0).map->blocks->full, 0);
        QCOMPARE(lab.side(1).map.get(), a.get());
    }

    void headsHaveTheirOwnMasks() {
        MaskLab lab;
        MaskSizes sizes = sizesOf(1024);
        sizes.heads = 4;
        sizes.kvHeads = 2;
        sizes.batch = 2;
        lab.setSizes(sizes);
        MaskSource source;
        source.text = "def m(b, h, q, k):\n    return (q - k < 128 * (h + 1)) & (q >= k)\n";
        lab.setSource(0, source);
        wait(lab);
        QVERIFY(lab.side(0).map->usesHead && !lab.side(0).map->usesBatch);
        QCOMPARE(lab.side(0).map->heads.size(), std::size_t(4));
        lab.setPlane(1, 3);
        QCOMPARE(lab.side(0).map->head, 3);
        QCOMPARE(lab.side(0).map->batch, 0);
        sizes.heads = 2;
        lab.setSizes(sizes);
        QCOMPARE(lab.head(), 1);
    }

    void experimentsGoThereAndBack() {
        MaskSource source = exampleSource(512);
        source.parameters["WINDOW"] = 64;
        const MaskSizes sizes = sizesOf(512, 64);
        const nlohmann::json experiment = measureExperiment(source, "mask", "", sizes, QStringLiteral("cpu"), 0);
        QCOMPARE(experiment["workload"].get<std::string>(), std::string("attention"));
        const engine::Experiment read = *engine::Experiment::read(experiment.dump());
        MaskSource back = sourceOfExperiment(read, {});
        QCOMPARE(back.text, source.text);
        QCOMPARE(back.captures, source.captures);
        QCOMPARE(back.parameters, source.parameters);
        QVERIFY(back.mask == "mask" && back.score == kNoMod);
        // Fewer heads are measured than are shown; the run says which sizes it stands for.
        QVERIFY(experiment.contains("stands_for"));
        QVERIFY(sizesOfExperiment(read, MaskSizes()) == sizes);
        const MaskSource withFile = sourceOfExperiment(read, {"def x(b, h, q, k):\n    return q == k"});
        QVERIFY(withFile.text.starts_with("def x"));
        QVERIFY(withFile.text.ends_with(source.text));
    }

    void measuredSizesFit() {
        MaskSizes sizes;
        sizes.queries = sizes.keys = 1 << 20;
        QString said;
        const MaskSizes cpu = measuredSizes(sizes, false, &said);
        QVERIFY(4.0 * double(cpu.heads) * double(cpu.queries) * double(cpu.keys) * double(cpu.headDim) <=
                kMostCpuFlops);
        QVERIFY(said.contains(QStringLiteral("of 1,048,576 queries")));
        QVERIFY(cpu.heads % cpu.kvHeads == 0);
        const MaskSizes gpu = measuredSizes(MaskSizes(), true, &said);
        QVERIFY(gpu == MaskSizes() && said.isEmpty());
    }

    void timesOfARun() {
        const auto times = maskTimes(R"({"forward_ms": 0.97, "full_forward_ms": 10.53, "predicted_forward_ms": 0.82,
            "forward_tflops": 353, "backward_ms": null, "device": "H200", "dtype": "bfloat16", "backend": "cuda",
            "heads": 64, "head_dim": 64, "q_len": 16384, "kv_len": 16384, "block_sparsity": 0.922})");
        QVERIFY(times.has_value() && times->forward && !times->backward);
        QVERIFY(qAbs(*times->forward->saved() - (1 - 0.97 / 10.53)) < 1e-12);
        QCOMPARE(times->where(), QStringLiteral("H200, bfloat16, 64 heads, D 64"));
        QVERIFY(!maskTimes("{}").has_value());
        QVERIFY(!maskTimes("no json").has_value());
    }

    void catalogueFitsTheSizes_data() {
        QTest::addColumn<qint64>("tokens");
        QTest::newRow("4,096") << static_cast<qint64>(4096);
        QTest::newRow("64") << static_cast<qint64>(64);
    }

    void catalogueFitsTheSizes() {
        QFETCH(qint64, tokens);
        MaskSizes sizes = sizesOf(tokens);
        sizes.heads = 8;
        sizes.batch = 2;
        const std::vector<MaskChoice> choices = maskCatalogue(sizes);
        QVERIFY(choices.size() >= 17);
        for (const MaskChoice& choice : choices) {
            const MaskStudyPtr study = studyMask(choice.source, sizes);
            QVERIFY2(!study->problem.has_value(), qPrintable(choice.name + QStringLiteral(": ") +
                                                             (study->problem ? study->problem->what : QString())));
            QVERIFY2(study->mask != nullptr || choice.name == QStringLiteral("Noop"), qPrintable(choice.name));
            QVERIFY(!choice.explanation.isEmpty());
        }
    }

    void layersOfAModel() {
        const MaskModel model = maskModel("synthetic:gpt-oss-20b");
        QCOMPARE(model.layers.size(), std::size_t(24));
        QCOMPARE(model.heads.heads, 64);
        QCOMPARE(model.heads.kvHeads, 8);
        QCOMPARE(model.layers[0].title, QStringLiteral("Layer 0, sliding 128"));
        QCOMPARE(model.layers[1].title, QStringLiteral("Layer 1, full attention"));
        const MaskStudyPtr study = studyMask(model.layers[0].source, sizesOf(1024));
        QVERIFY(!study->problem && study->mask);
        QVERIFY(maskReasons(study->mask.get(), nullptr, {0, 0, 500}, 373).allowed);
        QVERIFY(!maskReasons(study->mask.get(), nullptr, {0, 0, 500}, 372).allowed);
    }

    void lengthsAsPeopleWriteThem() {
        QCOMPARE(parseLength(QStringLiteral("16,384")), 16384);
        QCOMPARE(parseLength(QStringLiteral("16k")), 16384);
        QCOMPARE(parseLength(QStringLiteral("1M")), 1 << 20);
        QCOMPARE(parseLength(QStringLiteral("0")), 0);
        QCOMPARE(parseLength(QStringLiteral("x")), 0);
        QCOMPARE(parseLength(QStringLiteral("99999999999999999999")), 0);
        QCOMPARE(captureLengths("d=documents:5,6,7"), (std::vector<std::int64_t>{5, 6, 7}));
        QVERIFY(captureLengths("d=5,6").empty());
        QCOMPARE(equalLengths(10, 3), (std::vector<std::int64_t>{4, 3, 3}));
    }
};

QTEST_GUILESS_MAIN(MaskModelsTest)
#include "mask_models_test.moc"

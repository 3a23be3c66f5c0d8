// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_model.h"

#include <QMimeData>
#include <QSignalSpy>
#include <QTest>
#include <memory>

#include "ui/models/common/format.h"
#include "ui/models/queue/queue_words.h"

using namespace vitrine;

namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

engine::QueuePrice priced(double seconds, std::uint64_t peak, std::uint64_t budget = 80 * kGib) {
    engine::QueuePrice price;
    price.seconds = seconds;
    price.peak = peak;
    price.budget = budget;
    price.fits = peak <= budget;
    return price;
}

/// With the spaces of plain text.
QString plain(QString text) {
    return text.replace(QChar::Nbsp, QLatin1Char(' '));
}

engine::RunQueue sweepQueue() {
    engine::SweepPlan plan;
    plan.name = "rates";
    plan.base = R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-gpt-oss", "prompt_length": 64})";
    plan.options = {{"lr", {"1e-4", "2e-4"}}, {"rank", {"8", "16"}}};
    plan.rule = engine::StopRule{0.1, 100};
    engine::RunQueue queue;
    queue.addSweep(plan);
    for (std::int64_t number = 1; number <= 4; ++number) {
        queue.setPrice(number, priced(100, 20 * kGib));
    }
    return queue;
}

} // namespace

class QueueModelTest final : public QObject {
    Q_OBJECT

private slots:
    void foldsTheWaitingRunsOfASweepIntoOneRow() {
        ui::QueueModel model(nullptr);
        engine::RunQueue queue = sweepQueue();
        queue.start(1, kNow);
        model.setQueue(queue, kNow);
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.row(1).kind, ui::QueueRow::Kind::Group);
        QCOMPARE(model.row(1).left, ui::spanText(300));
        QVERIFY(model.toggle(1));
        QCOMPARE(model.rowCount(), 4);
        QVERIFY(model.toggle(1));
        QCOMPARE(model.rowCount(), 2);
        QVERIFY(!model.toggle(0));
    }

    void saysWhatDoesNotFitAndWhatWould() {
        ui::QueueModel model(nullptr);
        engine::RunQueue queue = sweepQueue();
        engine::QueuePrice price = priced(100, 91 * kGib);
        price.nearest = "checkpoint offload";
        price.nearestSpec = "{}";
        price.nearestPeak = 52 * kGib;
        price.nearestTime = 1.001;
        queue.setPrice(2, price);
        model.setQueue(queue, kNow);
        const ui::QueueRow& row = model.row(model.rowOf(2));
        QCOMPARE(plain(row.progress), QStringLiteral("needs 91.00 GiB of 80.00 GiB, 11.00 GiB over"));
        QCOMPARE(plain(row.progressSub), QStringLiteral("nearest change: checkpoint offload, 52.00 GiB, +0.1 % time"));
        QCOMPARE(row.button, QStringLiteral("Use checkpoint offload"));
        QCOMPARE(row.left, ui::unknownText());
    }

    void dropsARowWhereTheKeysWouldMoveIt() {
        ui::QueueModel model(nullptr);
        engine::RunQueue queue;
        for (int i = 0; i < 4; ++i) {
            queue.add({});
        }
        model.setQueue(queue, kNow);
        QSignalSpy moves(&model, &ui::QueueModel::moveWanted);
        const std::unique_ptr<QMimeData> last(model.mimeData({model.index(3, 0)}));
        model.dropMimeData(last.get(), Qt::MoveAction, 1, 0, {});
        QCOMPARE(moves.takeFirst(), (QVariantList{qint64{4}, 1}));
        const std::unique_ptr<QMimeData> first(model.mimeData({model.index(0, 0)}));
        model.dropMimeData(first.get(), Qt::MoveAction, 3, 0, {});
        QCOMPARE(moves.takeFirst(), (QVariantList{qint64{1}, 2}));
        model.dropMimeData(first.get(), Qt::MoveAction, 4, 0, {});
        QCOMPARE(moves.takeFirst(), (QVariantList{qint64{1}, 3}));
    }

    void letsOnlyRunsThatHaveNotBegunBeDragged() {
        ui::QueueModel model(nullptr);
        engine::RunQueue queue;
        queue.add({});
        queue.add({});
        queue.start(1, kNow);
        model.setQueue(queue, kNow);
        QVERIFY(!(model.flags(model.index(0, 0)) & Qt::ItemIsDragEnabled));
        QVERIFY(model.flags(model.index(1, 0)) & Qt::ItemIsDragEnabled);
    }

    void givesWaitingRunsNoLossAnywhere() {
        engine::RunQueue queue = sweepQueue();
        queue.start(1, kNow);
        queue.find(1)->evaluations = {{100, 1.5}};
        queue.find(1)->step = 100;
        queue.end(1, engine::QueueState::Finished, "", kNow + 5000);
        const ui::FlatTreePtr table = ui::sweepTree(queue, "rates");
        QCOMPARE(table->nodes.size(), 4U);
        QCOMPARE(table->nodes[0].cells[3].text, QStringLiteral("1.500"));
        QCOMPARE(table->nodes[1].cells[3].text, ui::unknownText());
        QVERIFY(table->nodes[1].cells[3].raw.isEmpty());
        QVERIFY(!ui::sweepPicture(queue, "rates").curves[1].value);
    }

    void saysOneLossInSentenceTableAndPlots() {
        engine::RunQueue queue = sweepQueue();
        for (const auto& [number, loss] : {std::pair{1, 1.4704}, {2, 1.4126}}) {
            queue.start(number, kNow);
            queue.find(number)->evaluations = {{400, loss}};
            queue.find(number)->step = 400;
            queue.end(number, engine::QueueState::Finished, "", kNow + 5000);
        }
        QCOMPARE(ui::queueSentence(queue),
                 QStringLiteral("<b>lr 1e−4 with rank 16</b> is best so far: evaluation loss "
                                "<b>1.413</b> after 400 steps, <b>0.058</b> below the next."));
        QCOMPARE(ui::sweepTree(queue, "rates")->nodes[0].cells[3].text, QStringLiteral("1.413"));
        const ui::SweepPicture picture = ui::sweepPicture(queue, "rates");
        QCOMPARE(picture.curves[0].value.value(), 1.4126);
        QVERIFY(picture.curves[0].best);
        QCOMPARE(picture.values, (QStringList{QStringLiteral("1e−4"), QStringLiteral("2e−4")}));
        QCOMPARE(picture.series.size(), 2);
    }

    void plansBlocksThatFollowEachOther() {
        engine::RunQueue queue = sweepQueue();
        queue.start(1, kNow);
        queue.setPrice(4, priced(100, 91 * kGib));
        const ui::QueuePlan plan = ui::queuePlan(queue, kNow + 40'000);
        QCOMPARE(plan.blocks.size(), 3U);
        QCOMPARE(plan.blocks[0].endMs, kNow + 100'000);
        QCOMPARE(plan.blocks[1].beginMs, plan.blocks[0].endMs);
        QCOMPARE(plan.blocks[2].endMs, kNow + 300'000);
        QCOMPARE(plan.heldBack.size(), 1U);
        QCOMPARE(plan.top, 100.0);
        QVERIFY(ui::queueFacts(queue, kNow).contains(QStringLiteral("1 does not fit and is held back")));
    }
};

QTEST_GUILESS_MAIN(QueueModelTest)
#include "queue_model_test.moc"

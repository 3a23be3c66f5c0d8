// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Pictures of slots by steps, and what is said of a batch that was stopped, refused or no faster than another.
#include <QTest>
#include <array>

#include "tests/ui/models/batching/batch_run.h"
#include "ui/models/batching/batch_tables.h"
#include "ui/widgets/timeline/slot_lane.h"
#include "ui/widgets/timeline/slot_painter.h"

using namespace vitrine;

namespace {

struct Fixture {
    test::BatchRun flowing{test::BatchTrace::uniform(40, 4, 60, 0.004, 11), 8, false};
    std::shared_ptr<const profiler::RunTimeline> flow = flowing.timeline();
    sessions::RunInfo infoA = test::batchInfo(1, "continuous", 8);
};

Fixture& fixture() {
    static Fixture one;
    return one;
}

} // namespace

class BatchPicturesTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    /// Lines between requests need rows with gaps: in thinner ones they would look like idle slots.
    void thinRowsHaveNoLines() {
        Fixture& f = fixture();
        const auto map = ui::BatchMap::make(ui::batchSide(f.infoA, *f.flow), ui::BatchAxis::Time);
        const QRgb canvas = ui::themeTokens().canvas.rgb();
        for (const bool thin : {true, false}) {
            const ui::PlotFrame frame{QSizeF(660, thin ? 20 : 120), 2}; // 8 slots
            const ui::AxisMap axis = ui::AxisMap::ofTime({0, map->length()}, 600);
            const QImage image = ui::paintSlots({map, axis, std::nullopt}, frame, ui::themeTokens());
            const ui::SlotRows rows = ui::slotRows(8, frame.size.height());
            int lines = 0;
            for (int slot = 0; slot < 8; ++slot) {
                const int y = static_cast<int>(rows.row(slot, 0, 1).center().y() * 2);
                // From where the slot is reported to the mark of the run's end.
                for (int x =
                         140 +
                         static_cast<int>(
                             axis.x(map->spanRange(map->side().slotBegins[static_cast<std::size_t>(slot)]).begin) * 2);
                     x < 1310; ++x) {
                    lines += image.pixel(x, y) == canvas ? 1 : 0;
                }
            }
            QVERIFY2(thin ? lines == 0 : lines > 0, qPrintable(QString::number(lines)));
        }
    }

    /// Columns are cut once: each is what the axis says, none is empty, and an instant lies in the column that shows
    /// it.
    void columnsOfAnAxis() {
        const ui::AxisMap axis = ui::AxisMap::ofTime({100, 1100}, 300);
        const ui::AxisColumns columns(axis, 600);
        QCOMPARE(columns.count(), 600);
        QCOMPARE(columns.begin(), 100);
        for (int x = 0; x < 600; ++x) {
            QVERIFY(columns.range(x).length() >= 1);
            QVERIFY(std::abs(columns.column(columns.range(x).begin) - x) <= 1);
        }
        QCOMPARE(columns.range(599).end, 1100);
        QCOMPARE(ui::AxisColumns(axis, 0).count(), 1);
        const ui::AxisColumns tight(ui::AxisMap::ofTime({0, 3}, 300), 600); // more columns than instants
        QCOMPARE(tight.range(1).length(), 1);
    }

    void stoppedRunsAreNotDone() {
        Fixture& f = fixture();
        for (const auto& [status, word] : {std::pair{sessions::RunStatus::Done, "done at"},
                                           {sessions::RunStatus::Cancelled, "stopped at"},
                                           {sessions::RunStatus::Interrupted, "stopped at"},
                                           {sessions::RunStatus::Running, "at"}}) {
            sessions::RunInfo info = f.infoA;
            info.status = status;
            const auto side = ui::batchSide(info, *f.flow);
            const QString words = ui::sideText(*side);
            QVERIFY2(words.section(QStringLiteral(", "), -1).startsWith(QLatin1String(word)), qPrintable(words));
            const auto table = ui::batchThroughputTable(ui::batchPair(side, nullptr, f.flow.get(), nullptr));
            QCOMPARE(table->nodes.back().cells[0].text.startsWith(QLatin1String("finished at")),
                     status == sessions::RunStatus::Done);
        }
    }

    /// What two decimals cannot distinguish is no gain.
    void equalRatesAreEqual() {
        Fixture& f = fixture();
        ui::BatchSide a = *ui::batchSide(f.infoA, *f.flow), b = a;
        const auto words = [&] {
            return ui::batchText(ui::batchPair(std::make_shared<ui::BatchSide>(a), std::make_shared<ui::BatchSide>(b),
                                               f.flow.get(), f.flow.get()));
        };
        a.generated = 100'000;
        for (const auto& [other, number] : {std::pair{100'000, "="}, {100'400, "="}, {100'600, "1.01x"}}) {
            b.generated = other;
            QCOMPARE(words().number, QString::fromLatin1(number));
            QVERIFY(words().sentence.startsWith(QLatin1String(other == 100'000   ? "A and B make "
                                                              : other == 100'400 ? "A makes "
                                                                                 : "more tokens a second in B")));
        }
    }

    /// A part of a server's session began with a request under way: the time before it made none of its tokens.
    void partsCountFromTheirBeginning() {
        test::RecordedRun run;
        run.record(base::RequestEvent{-9'000'000'000, 0, base::RequestChange::Arrived, -1, -1, 3, {}});
        run.record(base::RequestEvent{-8'000'000'000, 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.record(base::BatchStepEvent{.begin = 0, .end = 1'000'000'000, .index = 0, .decodeRows = 1, .sampled = 300});
        run.record(base::BatchStepEvent{
            .begin = 1'000'000'000, .end = 2'000'000'000, .index = 1, .decodeRows = 1, .sampled = 100});
        run.record(base::RequestEvent{2'000'000'000, 0, base::RequestChange::Finished, 0, 1, 400, run.word("length")});
        const auto timeline = run.timeline();
        const auto side = ui::batchSide(test::batchInfo(1, "continuous", 1), *timeline);
        QCOMPARE(side->generated, 400);
        QCOMPARE(side->tokensPerSecond(), 200.0);
        QCOMPARE(side->seconds(), 11.0); // on the axis, which shows the wait
        const auto table = ui::batchThroughputTable(ui::batchPair(side, nullptr, timeline.get(), nullptr));
        QCOMPARE(table->nodes[0].cells[1].text, QStringLiteral("200"));
        QVERIFY(table->nodes[0].cells[0].tip.contains(QStringLiteral("part")));
        Fixture& f = fixture();
        const auto whole = ui::batchSide(f.infoA, *f.flow);
        QCOMPARE(whole->tokensPerSecond(), static_cast<double>(whole->generated) / whole->seconds());
        const auto plain = ui::batchThroughputTable(ui::batchPair(whole, nullptr, f.flow.get(), nullptr));
        QVERIFY(plain->nodes[0].cells[0].tip.isEmpty());
    }

    /// A request that stood idle every other step of a long run costs what its columns do, and looks as if all were
    /// painted.
    void piecesAreThoseOfColumns() {
        std::vector<ui::RequestPiece> pieces;
        for (int i = 0; i < 200'000; ++i) {
            pieces.push_back({i * 10, i * 10 + 10, i % 2 == 0 ? ui::RequestState::Decode : ui::RequestState::Idle});
        }
        for (const auto& [begin, end] : {std::pair{0, 2'000'000}, {777, 40'005}, {1'000'005, 1'000'905}, {-50, 95}}) {
            const ui::AxisColumns columns(ui::AxisMap::ofTime({begin, end}, 300), 600);
            const auto seen = ui::seenPieces(pieces, columns);
            QVERIFY2(seen.size() < 3 * 600, qPrintable(QString::number(seen.size())));
            const auto lastIn = [&](const auto& all, int column) { // what is painted last there
                base::TimeNs last = -1;
                for (const ui::RequestPiece& piece : all) {
                    last = columns.column(piece.begin) == column ? piece.begin : last;
                }
                return last;
            };
            for (int column = 0; column < 600; column += 37) {
                const base::TimeNs wanted = lastIn(pieces, column);
                QVERIFY2(std::abs(lastIn(seen, column) - wanted) <= 10, qPrintable(QString::number(wanted)));
            }
            QVERIFY(seen.front().begin <= std::max(0, begin));
        }
        QVERIFY(ui::seenPieces({}, ui::AxisColumns(ui::AxisMap::ofTime({0, 10}, 300), 600)).empty());
    }

    /// The chosen request of a long run may have hundreds of thousands of stretches: only those in the range are looked
    /// at, and frames are as if all had been painted one after the other.
    void framesAreThoseInTheRange() {
        constexpr int kPieces = 3000;
        test::RecordedRun run;
        run.record(base::RequestEvent{0, 0, base::RequestChange::Arrived, -1, -1, 3, {}});
        for (int i = 0; i < 2 * kPieces; ++i) { // idle every other step, first in slot 1, then in slot 0
            run.record(base::SlotSpanEvent{i * 1000, i * 1000 + 400 + i % 7 * 50, i, 1, i < kPieces ? 1 : 0, 0,
                                           base::SlotState::Decode, 1, 0});
            run.record(base::BatchStepEvent{i * 1000, i * 1000 + 1000, i, 1});
        }
        const auto timeline = run.timeline();
        const auto map =
            ui::BatchMap::make(ui::batchSide(test::batchInfo(1, "continuous", 2), *timeline), ui::BatchAxis::Time);
        QCOMPARE(map->spansOf(0).size(), std::size_t(2 * kPieces));
        ui::TimeCursor time;
        time.setExtent({0, map->length()});
        ui::SlotLane lane(QStringLiteral("Slots"), &time, nullptr);
        lane.resize(700, 200);
        lane.setMap(map);
        lane.setChosen(0);
        for (const ui::TimeRange range : {ui::TimeRange{0, map->length()},
                                          {1'000'200, 1'020'700},
                                          {2'900'000, 3'050'000},
                                          {500'420, 500'980},
                                          {4'000'000, 4'100'000}}) {
            time.jumpTo(range);
            lane.setAxis(ui::AxisMap::ofTime(time.range(), 600));
            std::size_t visible = 0;
            for (const auto spans : map->spansOf(0, time.range())) {
                for (const std::size_t span : spans) {
                    QVERIFY(lane.spanRect(span).has_value());
                }
                visible += spans.size();
            }
            std::size_t wanted = 0;
            std::vector<QRectF> frames;
            for (const std::size_t span : map->spansOf(0)) {
                const auto box = lane.spanRect(span);
                wanted += box ? 1 : 0;
                if (box && !frames.empty() && frames.back().top() == box->top() &&
                    box->left() - frames.back().right() < 1.5) {
                    frames.back() = frames.back().united(*box);
                } else if (box) {
                    frames.push_back(*box);
                }
            }
            QCOMPARE(visible, wanted);
            QCOMPARE(lane.chosenFrames(), frames);
        }
        lane.setChosen(-1);
        QVERIFY(lane.chosenFrames().empty());
    }

    /// Few slots fill their plot as many do.
    void rowsFillThePlot() {
        for (const int slotCount : {1, 3, 8, 16, 200}) {
            const ui::SlotRows rows = ui::slotRows(slotCount, 180);
            const QRectF last = rows.row(slotCount - 1, 0, 1);
            QVERIFY2(last.bottom() + rows.gap() > 175 && last.bottom() <= 178, qPrintable(QString::number(slotCount)));
            QCOMPARE(rows.slotAt(176.9), slotCount - 1);
        }
    }

    /// Nothing ran: why not is what there is to say, and an end after microseconds is not at 0.0 ms.
    void refusedRunsSayWhy() {
        test::RecordedRun run;
        for (int i = 0; i < 3; ++i) {
            run.record(base::RequestEvent{1000, i, base::RequestChange::Arrived, -1, -1, 3, {}});
        }
        for (int i = 0; i < 3; ++i) {
            run.record(base::RequestEvent{4000 + i, i, base::RequestChange::Refused, -1, -1, 0,
                                          run.word("it needs 9 pages of 1")});
        }
        const auto timeline = run.timeline();
        const auto side = ui::batchSide(test::batchInfo(1, "continuous", 4), *timeline);
        const ui::BatchPair pair = ui::batchPair(side, nullptr, timeline.get(), nullptr);
        QCOMPARE(ui::batchText(pair).number, QStringLiteral("0"));
        QCOMPARE(ui::batchText(pair).sentence,
                 QStringLiteral("tokens. 3 of 3 requests were refused, request 0 because: it needs 9 pages of 1"));
        const ui::FlatTreePtr table = ui::batchThroughputTable(pair);
        const ui::FlatNode& end = table->nodes.back();
        QCOMPARE(end.cells[0].text, QStringLiteral("finished at, µs"));
        QCOMPARE(end.cells[1].text, QStringLiteral("3.0"));
    }

    void manySlotsStayPainted() {
        // A thousand slots in a hundred pixels, and one slot in the same room.
        for (const int slotCount : {1, 1000}) {
            test::RecordedRun run;
            run.record(base::BatchStepEvent{0, 1000, 0, slotCount});
            for (int slot = 0; slot < slotCount; ++slot) {
                run.record(base::SlotSpanEvent{0, 1000, 0, 1, slot, slot, base::SlotState::Decode, 1, 0});
                run.record(base::RequestEvent{0, slot, base::RequestChange::Arrived, -1, -1, 3, {}});
            }
            const auto timeline = run.timeline();
            const auto map = ui::BatchMap::make(ui::batchSide(test::batchInfo(1, "static", slotCount), *timeline),
                                                ui::BatchAxis::Time);
            ui::PlotFrame frame{QSizeF(400, 100), 2};
            const QImage image =
                ui::paintSlots({map, ui::AxisMap::ofTime({0, 1000}, 340), std::nullopt}, frame, ui::themeTokens());
            QCOMPARE(image.size(), QSize(800, 200));
            const QColor decode = ui::slotStyle(base::SlotState::Decode, ui::themeTokens()).fill;
            QCOMPARE(image.pixelColor(500, 10), decode);
        }
    }
};

QTEST_MAIN(BatchPicturesTest)
#include "batch_pictures_test.moc"

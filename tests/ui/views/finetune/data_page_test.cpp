// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Data page of the Fine-tune view: what it reads, where links lead, its states.
#include "ui/views/finetune/data_page.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "ui/models/finetune/data_text.h"
#include "ui/models/run/experiment_form.h"
#include "ui/views/finetune/data_inspector.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/widgets/plots/length_plot.h"
#include "ui/widgets/plots/pack_strip.h"
#include "ui/widgets/plots/token_grid.h"

using namespace vitrine;

namespace {

/// The page with a file of rows of tokens: a duplicate, a line that cannot be read, a row longer than eight tokens.
struct ShownData {
    ShownData() : view({&document, &time, nullptr, nullptr}) {
        QFile file(path());
        if (file.open(QIODevice::WriteOnly)) {
            file.write("{\"tokens\": [1, 2, 3]}\n{\"tokens\": [4, 5, 6, 7]}\n{\"tokens\": [1, 2, 3]}\n{\"tokens\"\n"
                       "{\"tokens\": [9, 8, 7, 6, 5, 4, 3, 2, 1, 2], \"trained\": [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]}\n"
                       "{\"tokens\": [9, 8, 7, 6, 5, 4, 3, 2, 1]}\n");
        }
        view.resize(1380, 820);
        view.show();
    }
    QString path() const { return folder.filePath(QStringLiteral("rows.jsonl")); }
    void open() {
        ui::ExperimentForm* form = view.form()->form();
        form->setText(QStringLiteral("model"), QStringLiteral("synthetic:tiny-llama"));
        form->setText(QStringLiteral("sequence_length"), QStringLiteral("8"));
        form->setText(QStringLiteral("data"), path());
        view.showPage(ui::FinetuneView::Data);
    }
    ui::DataPage& page() { return *view.dataPage(); }

    QTemporaryDir folder;
    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::FinetuneView view;
};

} // namespace

class DataPageTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutAFileThereIsNothing() {
        ShownData shown;
        shown.view.showPage(ui::FinetuneView::Data);
        QTRY_VERIFY(shown.page().settled());
        QVERIFY(!shown.page().hasData());
        QVERIFY(!shown.view.wantsInspector());
    }

    void aFileGetsTheDemoModelOnlyWhereNoneIsNamed() {
        ShownData shown;
        const ui::ExperimentForm* form = shown.view.form()->form();
        shown.view.form()->form()->setText(QStringLiteral("prompt_length"), QStringLiteral("64"));
        shown.view.takeData(shown.path());
        QCOMPARE(shown.view.page(), ui::FinetuneView::Data);
        QCOMPARE(form->text(QStringLiteral("data")), shown.path());
        QVERIFY(form->text(QStringLiteral("model")).endsWith(QLatin1String("vitrine-demo")));
        QVERIFY(!form->changed(QStringLiteral("prompt_length"))); // one input at a time
        shown.view.form()->form()->setText(QStringLiteral("model"), QStringLiteral("synthetic:tiny-llama"));
        shown.view.takeData(shown.path());
        QCOMPARE(form->text(QStringLiteral("model")), QStringLiteral("synthetic:tiny-llama"));
    }

    void theSentenceSaysWhatIsUsedAndLost() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().hasData());
        const engine::DataSummary& s = shown.page().data()->summary;
        QCOMPARE(s.used, 4);
        QVERIFY(shown.page().sentenceText().startsWith(QStringLiteral("4 of 6 rows are used; 2 are cut at 8 tokens")));
        QVERIFY(shown.page().whyText().contains(QStringLiteral("Left out: 1 duplicate, 1 unreadable line.")));
        QVERIFY(shown.view.wantsInspector());
    }

    void aLineLeadsToItsSequenceAndItsCut() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().row().row >= 0);
        shown.page().showLine(6);
        QTRY_COMPARE(shown.page().row().line, 6);
        QTRY_COMPARE(shown.page().grid()->currentToken(), 7);
        QCOMPARE(shown.page().row().kinds[8], ui::TokenKind::Lost);
        shown.page().showLine(3); // a duplicate has no sequence
        QTRY_VERIFY(shown.view.readout().contains(QStringLiteral("it has the tokens of line 1")));
    }

    void rowsOfAnArrayAreNoLines() {
        ShownData shown;
        QFile file(shown.path());
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("[{\"tokens\": [1, 2, 3]}, {\"tokens\": [4, 5, 6]}, {\"tokens\": [1, 2, 3]}]");
        file.close();
        shown.open();
        QTRY_VERIFY(shown.page().row().row >= 0);
        shown.page().showLine(3);
        QTRY_VERIFY(shown.view.readout().startsWith(QStringLiteral("Row 3: it has the tokens of row 1")));
        const ui::FlatTreePtr table = ui::rowsTable(*shown.page().data(), {});
        QCOMPARE(table->columns.front().title, QStringLiteral("Row"));
        QCOMPARE(ui::placeWord(shown.page().data()->summary, true), QStringLiteral("row"));
    }

    void withoutALengthTheBoxOfPackingSaysWhatHappens() {
        ShownData shown;
        shown.open();
        ui::ExperimentForm* form = shown.view.form()->form();
        form->setText(QStringLiteral("sequence_length"), QString());
        QTRY_VERIFY(shown.page().hasData() && shown.page().data()->summary.sequences == 1);
        form->setText(QStringLiteral("pack"), QStringLiteral("false"));
        QTRY_COMPARE(shown.page().data()->summary.sequences, 4);
    }

    void aRowCanKeepItsEnd() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().hasData());
        QCOMPARE(shown.page().data()->summary.keepNoAnswer, 1);
        shown.view.form()->form()->setText(QStringLiteral("long_row_exceptions"), QStringLiteral("5=keep-end"));
        QTRY_COMPARE(shown.page().data()->summary.keepNoAnswer, 0);
    }

    void keysWalkThroughSequencesAndTokens() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().row().row >= 0 && shown.page().settled());
        QTest::keyClick(&shown.page(), Qt::Key_Period);
        QTRY_COMPARE(shown.page().sequence().index, 1);
        QTest::keyClick(&shown.page(), Qt::Key_Comma);
        QTRY_COMPARE(shown.page().sequence().index, 0);
        QTRY_VERIFY(shown.page().settled());
        QTest::keyClick(shown.page().grid(), Qt::Key_Right);
        QTest::keyClick(shown.page().grid(), Qt::Key_Right);
        QCOMPARE(shown.page().grid()->currentToken(), 1);
        QVERIFY(shown.view.readout().contains(QStringLiteral("trained")));
    }

    void reasonsAndLengthsFilterTheTable() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().hasData());
        const auto rows = [&](const ui::RowFilter& filter) {
            return ui::rowsTable(*shown.page().data(), filter)->nodes.size();
        };
        ui::RowFilter duplicates, cut, lengths;
        duplicates.leftOut = engine::LeftOutReason::Duplicate;
        cut.cut = true;
        lengths.from = 3;
        lengths.to = 5;
        QCOMPARE(rows({}), 4U); // two that are cut, two that are left out
        QCOMPARE(rows(duplicates), 1U);
        QCOMPARE(rows(cut), 2U);
        QCOMPARE(rows(lengths), 2U);
        QCOMPARE(ui::filterText(lengths), QStringLiteral("3 to 4 tokens"));
        emit shown.page().inspector()->tableWanted(duplicates);
        QVERIFY(shown.page().filter().leftOut == engine::LeftOutReason::Duplicate);
        QVERIFY(shown.view.header()->tableShown());
    }

    void aDragOverTheHistogramListsRowsOfTheseLengths() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().hasData());
        auto* plot = shown.page().inspector()->findChild<ui::LengthPlot*>();
        plot->resize(300, plot->height());
        QTest::mousePress(plot, Qt::LeftButton, {}, QPoint(46, 80));
        QTest::mouseMove(plot, QPoint(200, 80));
        QTest::mouseRelease(plot, Qt::LeftButton, {}, QPoint(290, 80));
        const ui::RowFilter all = shown.page().filter();
        QCOMPARE(all.from, 3);
        QVERIFY(all.to > 10);
        QCOMPARE(ui::rowsTable(*shown.page().data(), all)->nodes.size(), 4U);
        emit plot->itemClicked(0); // as Return on the first bar
        QCOMPARE(shown.page().filter().from, 3);
        QVERIFY(shown.page().filter().to < all.to);
    }

    void aRowThatHasChangedInTheFileIsNamed() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().row().row >= 0 && shown.page().settled());
        QFile file(shown.path());
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("{\"tokens\": [1, 2, 9]}\n");
        file.close();
        QSignalSpy failed(&shown.page(), &ui::DataPage::failed);
        shown.page().showSequence(0);
        QTRY_VERIFY(!failed.isEmpty());
        QVERIFY(failed.last().front().toString().contains(QStringLiteral("changed since")));
    }

    void aFileThatCannotBeReadIsNamed() {
        ShownData shown;
        shown.open();
        QTRY_VERIFY(shown.page().hasData());
        QSignalSpy failed(&shown.page(), &ui::DataPage::failed);
        shown.view.form()->form()->setText(QStringLiteral("data"), QStringLiteral("/no/such/file.jsonl"));
        QTRY_VERIFY(!shown.page().hasData());
        QVERIFY(failed.last().front().toString().contains(QStringLiteral("/no/such/file.jsonl")));
    }
};

QTEST_MAIN(DataPageTest)
#include "data_page_test.moc"

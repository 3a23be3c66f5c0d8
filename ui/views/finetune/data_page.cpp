// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/data_page.h"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"
#include "ui/models/run/experiment_form.h"
#include "ui/views/finetune/data_bar.h"
#include "ui/views/finetune/data_form.h"
#include "ui/views/finetune/data_inspector.h"
#include "ui/views/finetune/section_head.h"
#include "ui/views/run/preset_bar.h"
#include "ui/widgets/plots/mask_pixels.h"
#include "ui/widgets/plots/pack_strip.h"
#include "ui/widgets/plots/token_grid.h"

namespace vitrine::ui {

namespace {

enum MiddlePage : std::uint8_t { ShowPlots, ShowNothing };

constexpr qsizetype kRawCharacters = 600;
constexpr int kNarrowPage = 980, kLowPage = 620;
constexpr int kSentenceHeight = 92, kLowSentence = 66;
constexpr int kSmallMask = 128, kLargeMask = 256, kMaskAir = 24;

QString htmlOf(const SentenceParts& sentence) {
    const ThemeTokens& t = themeTokens();
    QString html;
    for (const SentencePart& part : sentence) {
        const QString text = part.text.toHtmlEscaped();
        const QColor color = part.tone == SentenceTone::Warn  ? t.warn
                             : part.tone == SentenceTone::Bad ? t.bad
                                                              : t.text1;
        html += part.tone == SentenceTone::Plain
                    ? text
                    : QStringLiteral("<span style='font-weight:600;color:%1'>%2</span>").arg(color.name(), text);
    }
    return html;
}

std::vector<PackedRow> packedRows(const engine::SequenceLayout& layout) {
    std::vector<PackedRow> rows;
    for (const engine::PlacedRow& placed : layout.rows) {
        PackedRow row{countText(placed.line), {placed.begin, placed.begin + placed.length}, {}, placed.cut};
        for (const engine::LabelRun& run : placed.labels) {
            if (run.trained) {
                row.trained.push_back({run.begin, run.begin + run.count});
            }
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

} // namespace

bool DataPage::settled() const {
    return !typing_.isActive() && !job_.busy() && !sequenceJob_.busy() && !rowJob_.busy() && !lineJob_.busy() &&
           bar_->settled();
}

QString DataPage::sentenceText() const {
    return set_ ? plainText(dataSentence(*set_)) : QString();
}

QString DataPage::whyText() const {
    return set_ ? sentenceText() + QLatin1Char('\n') + dataSecondLine(*set_) + QLatin1Char('\n') + inspector_->asText()
                : QString();
}

void DataPage::read() {
    const QString file = form_->text(QStringLiteral("data"));
    const auto [key, problem] = form_->problem();
    const std::string wanted = file.isEmpty() ? std::string() : form_->experimentText();
    if (wanted == asked_ && (set_ || job_.busy())) {
        return;
    }
    asked_ = wanted;
    if (file.isEmpty() || !problem.isEmpty()) {
        job_.cancel();
        forget();
        emit failed(file.isEmpty()  ? QString()
                    : key.isEmpty() ? problem
                                    : tr("%1: %2").arg(ExperimentForm::label(key), problem));
        showState();
        return;
    }
    emit failed({});
    job_.ask(wanted);
    if (!set_) {
        showSentence(readingSentence({}), {});
    }
    stop_->setVisible(true);
    bar_->refresh();
}

void DataPage::forget() {
    set_.reset();
    sequence_ = {};
    row_ = {};
    inspector_->setData(nullptr);
    fields_->setData(nullptr);
    grid_->setTokens({});
    bar_->setSteps(0);
    bar_->refresh();
}

void DataPage::take(const DataSetPtr& set) {
    const std::int64_t before = sequence_.index;
    set_ = set;
    filter_ = {};
    inspector_->setFilter(filter_);
    inspector_->setData(set);
    fields_->setData(set);
    const engine::DataSummary& s = set->summary;
    std::vector<SequenceColumn> columns;
    for (const engine::SequenceTotals& each : s.all) {
        columns.push_back({each.tokens, each.trained, each.cut});
    }
    bars_->setSequences(std::move(columns), s.length);
    fitRoom();
    allHead_->setFacts(tr("one column each, tokens"));
    allHead_->setRight(tr("%1 to train, %2 full; padding %3 tokens")
                           .arg(countText(s.sequences), shareText(s.fill()), countText(s.padding)));
    bar_->setSteps(s.stepsOfEpoch);
    showSentence(dataSentence(*set), dataSecondLine(*set));
    showState();
    showSequence(std::clamp<std::int64_t>(before, 0, s.sequences - 1));
    sayRead();
    emit loaded();
}

void DataPage::sayRead() {
    emit readoutChanged(
        set_ ? tr("%1 rows read in %2 s").arg(countText(set_->summary.rows)).arg(set_->seconds, 0, 'f', 1) : QString());
}

void DataPage::showSentence(const SentenceParts& parts, const QString& second) {
    sentence_->setText(htmlOf(parts));
    sentence_->setAccessibleName(plainText(parts));
    second_->setText(second);
    second_->setToolTip(second);
}

/// The plots, or why there is nothing to show.
void DataPage::showState() {
    stop_->setVisible(job_.busy());
    const bool any = set_ != nullptr;
    bar_->setStartable(any, tr("There are no data to train on"));
    if (any) {
        if (middle_->currentIndex() == ShowNothing) {
            middle_->setCurrentIndex(ShowPlots);
        }
        return;
    }
    showSentence({{tr("What the model will be trained on")}}, {});
    middle_->setCurrentIndex(ShowNothing);
    const QString file = form_->text(QStringLiteral("data"));
    if (file.isEmpty()) {
        nothing_->set(tr("No data yet. Drop a .jsonl file here."), tr("Open"), [this] { chooseFile(); });
    } else {
        nothing_->set(job_.busy() ? tr("Reading the rows.") : tr("The data cannot be shown; the line above says why."),
                      tr("Open another file"), [this] { chooseFile(); });
    }
    emit loaded();
}

void DataPage::showSequence(std::int64_t sequence, std::int64_t row, bool atCut) {
    if (!set_ || sequence < 0 || sequence >= set_->summary.sequences) {
        return;
    }
    sequenceJob_.start([set = set_, sequence] { return sequencePicture(*set, sequence); },
                       [this, set = set_, row, atCut](SequencePicture picture) {
                           if (set == set_) {
                               takeSequence(std::move(picture), row, atCut);
                           }
                       });
}

void DataPage::takeSequence(SequencePicture picture, std::int64_t row, bool atCut) {
    if (!picture.problem.isEmpty()) {
        emit failed(picture.problem);
        return;
    }
    sequence_ = std::move(picture);
    bars_->setChosen(static_cast<int>(sequence_.index));
    number_->setText(countText(sequence_.index + 1));
    sequenceHead_->setTitle(
        tr("Sequence %1 of %2").arg(countText(sequence_.index + 1), countText(set_->summary.sequences)));
    sequenceHead_->setFacts(sequenceFacts(sequence_.layout));
    strip_->setRows(packedRows(sequence_.layout), sequence_.layout.length);
    kinds_->setVisible(sequence_.masks.size() > 1);
    showMask();
    showRow(row, atCut);
}

void DataPage::showMask() {
    if (sequence_.masks.empty()) {
        return;
    }
    const auto kind = std::min<std::size_t>(static_cast<std::size_t>(kinds_->current()), sequence_.masks.size() - 1);
    mask_->setMask(sequence_.masks[kind], packedRows(sequence_.layout), sequence_.layout.length);
    mask_->setChosen(strip_->chosen());
    counts_->setMask(sequence_.masks[kind]);
}

void DataPage::showRow(std::int64_t row, bool atCut) {
    if (!set_ || row < 0 || row >= static_cast<std::int64_t>(sequence_.layout.rows.size())) {
        return;
    }
    strip_->setChosen(static_cast<int>(row));
    mask_->setChosen(static_cast<int>(row));
    const engine::PlacedRow placed = sequence_.layout.rows[static_cast<std::size_t>(row)];
    rowJob_.start([set = set_, placed, sequence = sequence_.index] { return rowTokens(*set, placed, sequence); },
                  [this, set = set_, atCut](RowTokens tokens) {
                      if (set != set_) {
                          return;
                      }
                      if (!tokens.problem.isEmpty()) {
                          emit failed(tokens.problem);
                          return;
                      }
                      row_ = std::move(tokens);
                      rowHead_->setTitle(tr("Row %1").arg(countText(row_.line)));
                      showTurns();
                      grid_->setTokens({row_.cells, row_.kinds, row_.special});
                      if (atCut) {
                          grid_->setCurrentToken(row_.keptBegin > 0 ? row_.keptBegin : row_.keptEnd - 1, true);
                      }
                  });
    lineJob_.start([set = set_, line = placed.line] { return rawLine(*set, line, kRawCharacters); },
                   [this, place = placeOf(placed.line)](const QString& text) { fields_->setRawLine(place, text); });
}

QString DataPage::placeOf(std::int64_t line) const {
    return tr("%1 %2").arg(placeWord(set_->summary), countText(line));
}

void DataPage::showTurns() {
    std::vector<TurnPart> turns;
    for (const TurnSpan& turn : row_.turns) {
        const bool answer = turn.trained > 0;
        turns.push_back({tr("%1 %2").arg(answer ? tr("answer") : turn.role, countText(turn.end - turn.begin)),
                         {turn.begin, turn.end},
                         {0, turn.trained}});
    }
    turns_->setVisible(!turns.empty());
    turns_->setTurns(std::move(turns), row_.tokens());
}

void DataPage::updateInView() {
    if (row_.row < 0 || grid_->tokens().size() == 0) {
        return;
    }
    const auto [first, last] = grid_->inView();
    turns_->setInView({first, last});
    rowHead_->setFacts(rowFacts(row_));
    rowHead_->setRight(tr("tokens %1 to %2 in view").arg(countText(first), countText(last - 1)));
}

void DataPage::hoverToken(std::int64_t token, bool fromGrid) {
    if (row_.row < 0 || token >= row_.tokens()) {
        return;
    }
    const std::int64_t shown = token >= 0 ? token : grid_->currentToken();
    const bool kept = shown >= row_.keptBegin && shown < row_.keptEnd;
    if (fromGrid) {
        strip_->setMarked(shown >= 0 && kept ? row_.place + shown - row_.keptBegin : -1);
    }
    emit readoutChanged(shown >= 0 ? tokenReadout(row_, shown) : QString());
}

void DataPage::showLine(std::int64_t line) {
    if (!set_) {
        return;
    }
    const auto [sequence, row] = placeOfLine(*set_, line);
    if (sequence >= 0) {
        showSequence(sequence, row, true);
        return;
    }
    // No sequence has it: it is left out, validates or keeps no answer. The raw line can still be read.
    lineJob_.start([set = set_, line] { return rawLine(*set, line, kRawCharacters); },
                   [this, place = placeOf(line)](const QString& text) { fields_->setRawLine(place, text); });
    const auto& left = set_->summary.leftOut;
    const auto found = std::find_if(left.begin(), left.end(), [line](const auto& each) { return each.line == line; });
    const QString why = found == left.end()    ? tr("no sequence that trains takes it")
                        : !found->why.empty()  ? textOf(found->why)
                        : found->firstLine > 0 ? tr("it has the tokens of %1 %2")
                                                     .arg(placeWord(set_->summary, true), countText(found->firstLine))
                                               : leftOutName(found->reason);
    emit readoutChanged(tr("%1: %2").arg(placeOf(line), why));
}

void DataPage::showNode(const FlatNode* node) {
    if (node != nullptr && node->key > 0) {
        const auto line = static_cast<std::int64_t>(node->key);
        emit tableWanted(false);
        showLine(line);
    }
}

void DataPage::except(std::int64_t line, const QString& how) {
    const QString key = QStringLiteral("long_row_exceptions");
    const QString prefix = QStringLiteral("%1=").arg(line);
    QStringList parts = form_->text(key).split(QLatin1Char('+'), Qt::SkipEmptyParts);
    parts.removeIf([&prefix](const QString& part) { return part.startsWith(prefix); });
    form_->setText(key, (parts << prefix + how).join(QLatin1Char('+')));
}

void DataPage::chooseFile() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Choose the data"), {},
                                                      tr("Rows (*.jsonl *.json *.safetensors);;All files (*)"));
    if (!path.isEmpty()) {
        takeFile(path);
    }
}

void DataPage::takeFile(const QString& path) {
    for (const char* other : {"tokens_file", "prompt_length"}) {
        form_->reset(QString::fromLatin1(other));
    }
    const QString model = QStringLiteral("model");
    if (form_->text(model).isEmpty()) {
        form_->setText(model, demoModel());
    }
    form_->setText(QStringLiteral("data"), path);
}

void DataPage::copyCommand() {
    QApplication::clipboard()->setText(form_->commandLine());
    emit readoutChanged(tr("The command line was copied"));
}

void DataPage::refreshRuns() {
    const bool running = context_.runs != nullptr && context_.runs->running();
    fields_->setReadOnly(running);
    bar_->setStartable(set_ != nullptr && !running, tr("There are no data to train on"));
}

void DataPage::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    fitRoom();
    typing_.start();
    sayRead();
    if (form_->text(QStringLiteral("data")).isEmpty()) {
        fields_->fileField()->setFocus();
    }
}

void DataPage::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitRoom();
}

/// A narrow page has no room for the form. A low one keeps the sequence, its tokens and half of the mask.
void DataPage::fitRoom() {
    const bool low = height() < kLowPage;
    fields_->setVisible(width() >= kNarrowPage);
    second_->setVisible(!low);
    sentenceStrip_->setFixedHeight(low ? kLowSentence : kSentenceHeight);
    sentence_->setToolTip(low ? second_->text() : QString());
    all_->setVisible(!low && set_ && set_->summary.sequences > 1);
    for (PackLegend* legend : findChildren<PackLegend*>()) {
        legend->setVisible(!low);
    }
    mask_->setSide(low ? kSmallMask : kLargeMask);
    mask_->setToolTip(low ? counts_->asText() : QString());
    counts_->setVisible(!low);
    maskHead_->setTitle(low ? QString() : tr("Block mask"));
    maskPart_->setFixedWidth(low ? kSmallMask + 2 * kMaskAir : kLargeMask + kMaskAir);
}

QList<QWidget*> DataPage::stops() const {
    return fields_->stops() + QList<QWidget*>{bars_, number_, strip_, turns_, grid_, kinds_, mask_} +
           inspector_->stops() + bar_->stops();
}

} // namespace vitrine::ui

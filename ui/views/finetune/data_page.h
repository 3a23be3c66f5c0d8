// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The data of a run before it starts, as the model sees them: packed sequences, the tokens of a row, the block mask,
// and what is cut or left out.

#include <QTimer>
#include <QWidget>

#include "ui/models/common/latest_job.h"
#include "ui/models/finetune/data_job.h"
#include "ui/models/finetune/data_text.h"
#include "ui/widgets/base/view.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QStackedWidget;

namespace vitrine::ui {

class DataBar;
class DataForm;
class DataInspector;
class ExperimentForm;
class MaskCounts;
class MaskPixels;
class PackStrip;
class SectionHead;
class SequenceBars;
class TokenGrid;
class TurnStrip;

class DataPage final : public QWidget {
    Q_OBJECT

public:
    DataPage(const ViewServices& context, ExperimentForm* form, QWidget* parent);
    ~DataPage() override;

    DataInspector* inspector() const { return inspector_; }
    DockHeader* inspectorHeader() const { return inspectorHeader_; }
    bool hasData() const { return set_ != nullptr; }
    bool settled() const;
    const DataSetPtr& data() const { return set_; }
    const SequencePicture& sequence() const { return sequence_; }
    const RowTokens& row() const { return row_; }
    const RowFilter& filter() const { return filter_; } ///< of the table of rows
    PackStrip* strip() const { return strip_; }
    TokenGrid* grid() const { return grid_; }
    DataBar* bar() const { return bar_; }
    QString sentenceText() const;
    QString whyText() const;
    QList<QWidget*> stops() const;

    /// Trains on this file: in place of other rows, and with the demo model where no model is named.
    void takeFile(const QString& path);
    void showSequence(std::int64_t sequence, std::int64_t row = 0, bool atCut = false);
    void showRow(std::int64_t row, bool atCut = false);
    void showLine(std::int64_t line);
    /// A row of the table of rows; null: none.
    void showNode(const FlatNode* node);
    void stopReading() { job_.stop(); }
    /// Prices and buttons follow what runs.
    void refreshRuns();
    /// A find field's text, or "id:15327": goes on to the next token that has it.
    QString find(const QString& text, int direction);

signals:
    void startWanted();
    void readoutChanged(const QString& text);
    void failed(const QString& sentence);
    void tableWanted(bool on); ///< the table of rows; it is filled when it comes
    void loaded();             ///< data came or went

protected:
    void showEvent(QShowEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    QWidget* buildSentence();
    QWidget* buildMiddle();
    QWidget* buildSequence(QWidget* parent);
    QWidget* buildTokens(QWidget* parent);
    QWidget* buildMask(QWidget* parent);
    void connectPlots();
    void chooseFile();
    void copyCommand();
    void read();
    void take(const DataSetPtr& set);
    void forget();
    void showSentence(const SentenceParts& parts, const QString& second);
    void showState();
    void sayRead();
    void takeSequence(SequencePicture picture, std::int64_t row, bool atCut);
    void showMask();
    /// "Line 12", or "Row 12" of a file that is one array.
    QString placeOf(std::int64_t line) const;
    void showTurns();
    void updateInView();
    void hoverToken(std::int64_t token, bool fromGrid);
    void except(std::int64_t line, const QString& how);
    /// Opens the table with these rows only.
    void listRows(const RowFilter& filter);
    void exportSummary();
    void nextLoss(int direction);
    void fitRoom();

    ViewServices context_;
    ExperimentForm* form_;
    DataJob job_;
    LatestJob<SequencePicture> sequenceJob_;
    LatestJob<RowTokens> rowJob_;
    LatestJob<QString> lineJob_;
    QTimer typing_;
    std::string asked_; ///< the experiment that was read last
    DataSetPtr set_;
    SequencePicture sequence_;
    RowTokens row_;
    RowFilter filter_;
    std::int64_t lossLine_ = 0; ///< where the last step to a loss led

    QWidget* sentenceStrip_ = nullptr;
    QLabel* sentence_ = nullptr;
    TextLabel* second_ = nullptr;
    QPushButton* stop_ = nullptr;
    DataForm* fields_ = nullptr;
    QStackedWidget* middle_ = nullptr;
    EmptyState* nothing_ = nullptr;
    QWidget *all_ = nullptr, *maskPart_ = nullptr;
    SectionHead *allHead_ = nullptr, *sequenceHead_ = nullptr, *rowHead_ = nullptr, *maskHead_ = nullptr;
    SequenceBars* bars_ = nullptr;
    QLineEdit* number_ = nullptr;
    PackStrip* strip_ = nullptr;
    TurnStrip* turns_ = nullptr;
    TokenGrid* grid_ = nullptr;
    SegmentedControl* kinds_ = nullptr;
    MaskPixels* mask_ = nullptr;
    MaskCounts* counts_ = nullptr;
    DataBar* bar_ = nullptr;
    DataInspector* inspector_;
    DockHeader* inspectorHeader_;
};

} // namespace vitrine::ui

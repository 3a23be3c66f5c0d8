// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Starts runs: a form made from the option table, what the run would need, the prompt, the text as it is written.

#include <QTimer>
#include <vector>

#include "ui/models/run/experiment_form.h"
#include "ui/views/common/document_view.h"
#include "ui/views/run/live_panel.h"

class QPlainTextEdit;
class QPushButton;

namespace vitrine::ui {

class FitLine;
class OptionForm;
class PresetBar;
class TokenText;

class RunView final : public DocumentView {
    Q_OBJECT

public:
    explicit RunView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override { return live_; }
    QWidget* inspectorHeader() override { return live_->header(); }
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    bool undoesItself() const override { return true; }
    QList<QWidget*> focusStops() const override;
    bool settled() const override;
    void takeExperiment(const QString& experimentJson) override;
    void takeFolder(const QString& path) override;
    void showPage(const QString& page) override; ///< the number of a workload
    void activated() override;

    ExperimentForm* form() { return &form_; }
    OptionForm* fields() const { return fields_; }
    TokenText* text() const { return text_; }
    QPlainTextEdit* prompt() const { return prompt_; }
    LivePanel* live() const { return live_; }
    QPushButton* runButton() const { return run_; }
    PresetBar* presets() const { return presets_; }
    QString fitText() const;
    QString commandText() const;
    /// Where a session file is made when none is open.
    void setSessionFolder(const QString& folder) { sessionFolder_ = folder; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    // All at once, seen or not: a run that ends while another view is shown has its text and numbers here.
    void refresh() override;
    void onSelection() override { refresh(); }
    void onRuns() override;
    void onEvents(sessions::RunId run) override;

private:
    void buildHeader();
    QWidget* buildFormColumn();
    QWidget* buildCentre();
    void connectRuns();
    void start();
    void stop();
    /// Whether the form has this workload; the others are started elsewhere.
    bool startsHere(const std::string& workload) const;
    /// The form holds edits that no run has kept yet.
    bool formTouched() const;
    void onFormReloaded();
    void showFormsWorkload(); ///< in the header
    void onStarted(qint64 run);
    void onEnded(const QString& status, const QString& error, const QString& metrics);
    void flushTokens();
    void showSaved();
    void fillForm(const sessions::RunInfo& run);
    void showTexts(const sessions::RunInfo& run, const std::vector<sessions::RunText>& texts);
    void updateNumbers();
    QString placeholderText(bool running) const; ///< of the text while it is empty
    QWidget* buildRlBar(QWidget* parent);
    void updateButtons();
    void chooseFile(const QString& key);
    void takeDevice();      ///< the form follows the device that was chosen
    void showFormsDevice(); ///< the choice of device follows the form

    const std::vector<const engine::Workload*> workloads_; ///< that the form has, in the order of the header's segments
    ExperimentForm form_;
    SegmentedControl* segments_ = nullptr;
    FitLine* fit_ = nullptr;
    QPushButton *preview_ = nullptr, *run_ = nullptr, *send_ = nullptr;
    OptionForm* fields_ = nullptr;
    PresetBar* presets_ = nullptr;
    TokenText* text_ = nullptr;
    QWidget *promptBox_ = nullptr, *commandBox_ = nullptr;
    QWidget* rlBar_ = nullptr; ///< leads to the view RL
    QPlainTextEdit *prompt_ = nullptr, *command_ = nullptr;
    LivePanel* live_;
    QTimer tokenTimer_;
    std::vector<StreamedToken> pending_;
    LiveNumbers numbers_;
    sessions::RunId liveRun_ = 0;  ///< the run whose tokens the text shows
    sessions::RunId textRun_ = -1; ///< the saved run whose texts it shows
    bool liveBatch_ = false;       ///< its tokens are those of many requests
    bool follow_ = false;          ///< a run of this view becomes A when the session knows it
    bool readingTexts_ = false;
    bool filling_ = false;
    bool choosing_ = false;    ///< a device is being taken over
    bool formGiven_ = false;   ///< the form was filled by a preset, "Try" or a folder
    bool promptTyped_ = false; ///< the prompt was edited since it was filled
    QString sessionFolder_;
};

} // namespace vitrine::ui

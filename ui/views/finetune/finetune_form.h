// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The form of a fine-tuning run: its options at the left with what they need, and the same as text that can be edited
// and given to `vitrine run`.

#include <QTimer>
#include <QWidget>

#include "ui/models/run/experiment_form.h"
#include "ui/widgets/base/view.h"

class QPlainTextEdit;

namespace vitrine::ui {

class FitLine;
class OptionForm;
class PresetBar;

class FinetuneForm final : public QWidget {
    Q_OBJECT

public:
    FinetuneForm(const ViewServices& context, QWidget* parent);

    ExperimentForm* form() { return &form_; }
    OptionForm* fields() const { return fields_; }
    FitLine* fit() const { return fit_; }
    QPlainTextEdit* configuration() const { return configuration_; }
    QString configurationError() const;
    QString commandText() const;

    /// Shows an experiment; returns why it cannot be shown. `given`: somebody asked for it, so that it counts as
    /// edited.
    QString take(const QString& experimentJson, bool given);
    void takeFolder(const QString& path);
    /// Starts what the form says; false: something is wrong or a run goes on, and the field or the strip says what.
    bool start(const QString& sessionFolder);
    bool touched() const { return touched_; } ///< somebody edited it since the last run
    QList<QWidget*> stops() const;

signals:
    void failed(const QString& sentence); ///< empty: nothing is wrong any more
    void readoutChanged(const QString& text);

protected:
    void showEvent(QShowEvent* event) override;

private:
    QWidget* buildFields();
    QWidget* buildText();
    void chooseFile(const QString& key);
    void onEdited();
    void showConfiguration();
    void readConfiguration();

    ViewServices context_;
    ExperimentForm form_;
    FitLine* fit_;
    OptionForm* fields_ = nullptr;
    PresetBar* presets_ = nullptr;
    QPlainTextEdit *configuration_ = nullptr, *command_ = nullptr;
    TextLabel* error_ = nullptr;
    QTimer typing_; ///< the text is read a moment after the last key
    bool filling_ = false, touched_ = false;
};

} // namespace vitrine::ui

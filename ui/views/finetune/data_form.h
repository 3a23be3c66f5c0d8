// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The options that decide what a run trains on, with what the data make of each. They are those of the form of the run.

#include <QScrollArea>
#include <map>

#include "ui/models/finetune/data_set.h"
#include "ui/models/run/experiment_form.h"
#include "ui/widgets/base/controls.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLineEdit;
class QPlainTextEdit;
class QVBoxLayout;

namespace vitrine::ui {

class DataForm final : public QWidget {
    Q_OBJECT

public:
    DataForm(ExperimentForm* form, QWidget* parent);

    void setData(const DataSetPtr& set); ///< null: nothing is known
    void setRawLine(const QString& place, const QString& text);
    void setReadOnly(bool on);
    QLineEdit* fileField() const { return file_; }
    QList<QWidget*> stops() const;

signals:
    void openWanted();

private:
    QVBoxLayout* addGroup(const QString& title, TextLabel** note);
    /// `key`: the option whose change puts a dot beside the name. Returns the row.
    QWidget* addRow(const QString& name, QWidget* editor, TextLabel* note = nullptr, const QString& key = {});
    QLineEdit* textField(const QString& key);
    QComboBox* choiceField(const QString& key, const std::vector<std::pair<QString, QString>>& choices);
    void buildGroups();
    void buildRawLine();
    void takeForm();

    ExperimentForm* form_;
    QVBoxLayout* column_ = nullptr;
    QWidget *fields_ = nullptr, *raw_ = nullptr;
    QLineEdit *file_ = nullptr, *length_ = nullptr, *validation_ = nullptr, *seed_ = nullptr;
    QComboBox *template_ = nullptr, *longRows_ = nullptr, *duplicates_ = nullptr;
    QCheckBox* pack_ = nullptr;
    TextLabel *fileNote_ = nullptr, *formatNote_ = nullptr, *templateNote_ = nullptr, *endNote_ = nullptr,
              *longNote_ = nullptr, *packNote_ = nullptr, *duplicateNote_ = nullptr, *validationNote_ = nullptr,
              *rawTitle_ = nullptr, *exceptions_ = nullptr;
    QPlainTextEdit* rawText_ = nullptr;
    QWidget* exceptionRow_ = nullptr;
    std::map<QString, TextLabel*> dots_; ///< by option
    bool filling_ = false;
};

} // namespace vitrine::ui

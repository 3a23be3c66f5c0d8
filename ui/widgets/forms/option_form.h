// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The form of an experiment, made from the option table: a section for each group, the editor that fits each type, a
// dot at what was changed, one line under what is wrong. Every edit can be undone.

#include <QScrollArea>
#include <QUndoStack>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ui/models/run/experiment_form.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

/// How the form of a workload is arranged.
struct OptionLayout {
    QStringList basic;       ///< keys that stand above all groups; the groups are folded then. Empty: nothing is folded
    QStringList firstGroups; ///< groups that stand above the others, in this order
};

class OptionForm final : public QScrollArea {
    Q_OBJECT

public:
    /// `skip` are keys that are edited elsewhere. `choices` offers texts for a key (models).
    OptionForm(ExperimentForm* form, QStringList skip, QWidget* parent = nullptr);

    /// Texts to choose from in an editable field, which says `hint` while it is empty; "…" beside it asks chooseWanted.
    void setChoices(const QString& key, const QStringList& choices, const QString& hint);
    /// Groups that stand above the others, in this order, for workloads without a layout of their own.
    void setFirstGroups(const QStringList& groups);
    void setLayout(const QString& workload, OptionLayout layout);
    /// Whether the fields of a group are hidden below its head; false where nothing is folded.
    bool folded(const QString& group) const;
    void setFolded(const QString& group, bool folded);
    QWidget* editor(const QString& key) const; ///< null when the key has no field
    QString errorLine(const QString& key) const;
    bool dotShown(const QString& key) const;
    /// Marks a field that is wrong only together with others; cleared by the next edit.
    void setError(const QString& key, const QString& error);
    QUndoStack* stack() { return &stack_; }
    /// Edits as if typed, so that it can be undone.
    void edit(const QString& key, const QString& text);

signals:
    void chooseWanted(const QString& key); ///< the folder button

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Choices {
        QStringList texts;
        QString hint;
    };
    struct Row {
        QString group; ///< that folds; empty: it is always shown
        QWidget* editor = nullptr;
        QPushButton* dot = nullptr;
        TextLabel* error = nullptr;
    };
    /// The head of a group that folds, and what it hides.
    struct Fold {
        QPushButton* head = nullptr;
        QWidget* fields = nullptr;
    };
    void rebuild();
    const OptionLayout& layoutOfForm() const;
    std::vector<std::pair<QString, std::vector<const engine::OptionSpec*>>> groupsOf(const OptionLayout& layout) const;
    QLayout* addGroup(QWidget* page, const QString& group, bool folds, bool first);
    void showFold(const QString& group);
    QWidget* makeRow(const engine::OptionSpec& spec, QWidget* parent);
    QWidget* makeEditor(const engine::OptionSpec& spec, QWidget* parent);
    /// A field for several texts, one on each line.
    QWidget* makeList(const engine::OptionSpec& spec, QWidget* parent);
    void refresh(const QString& key);
    void showError(Row& row, const QString& error);

    ExperimentForm* form_;
    QStringList skip_;
    OptionLayout usual_;
    std::map<QString, OptionLayout> layouts_; ///< by workload
    std::map<QString, Fold> folds_;
    std::set<QString> unfolded_;
    std::map<QString, Choices> choices_;
    std::map<QString, Row> rows_;
    QUndoStack stack_;
    const QWidget* typing_ = nullptr; ///< the field whose letters are being taken: they are not written back
    bool filling_ = false;
};

} // namespace vitrine::ui

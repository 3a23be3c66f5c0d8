// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The command palette: a frameless child widget over the window, not a window of its own (Wayland).

#include <QAbstractListModel>
#include <QSortFilterProxyModel>
#include <QWidget>
#include <functional>

#include "ui/widgets/base/action_list.h"

class QLineEdit;
class QListView;

namespace vitrine::ui {

/// Score of a fuzzy match of `typed` in `text`: letters in order; starts of words and neighbours score more.
/// -1: no match. `places` gets the matched letters when it is not null.
int fuzzyScore(const QString& typed, const QString& text, std::vector<int>* places = nullptr);

class ActionModel final : public QAbstractListModel {
    Q_OBJECT

public:
    explicit ActionModel(const ActionList& actions, QObject* parent = nullptr);
    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QAction* actionAt(int row) const { return actions_[static_cast<std::size_t>(row)]; }

private:
    std::vector<QAction*> actions_;
};

class FuzzyProxy final : public QSortFilterProxyModel {
    Q_OBJECT

public:
    using QSortFilterProxyModel::QSortFilterProxyModel;
    void setTyped(const QString& typed);
    const QString& typed() const { return typed_; }

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    QString typed_;
};

class CommandPalette final : public QWidget {
    Q_OBJECT

public:
    CommandPalette(const ActionList& actions, QWidget* window);
    /// Called before it opens, so that the reasons of unavailable actions are those of now.
    void setRefresh(std::function<void()> refresh) { refresh_ = std::move(refresh); }
    void openOver();
    QLineEdit* field() const { return field_; }
    QListView* list() const { return list_; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void activate(const QModelIndex& index);
    QLineEdit* field_;
    QListView* list_;
    ActionModel* model_;
    FuzzyProxy* proxy_;
    std::function<void()> refresh_;
};

} // namespace vitrine::ui

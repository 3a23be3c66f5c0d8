// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The groups of the form: which fields stand in which, and how groups fold.
#include <QFormLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"

namespace vitrine::ui {

using engine::OptionSpec;

void OptionForm::setFirstGroups(const QStringList& groups) {
    usual_.firstGroups = groups;
    rebuild();
}

void OptionForm::setLayout(const QString& workload, OptionLayout layout) {
    layouts_[workload] = std::move(layout);
    rebuild();
}

const OptionLayout& OptionForm::layoutOfForm() const {
    const auto found = layouts_.find(form_->workload());
    return found == layouts_.end() ? usual_ : found->second;
}

std::vector<std::pair<QString, std::vector<const OptionSpec*>>> OptionForm::groupsOf(const OptionLayout& layout) const {
    std::vector<std::pair<QString, std::vector<const OptionSpec*>>> out;
    std::vector<const OptionSpec*> basic(static_cast<std::size_t>(layout.basic.size()), nullptr);
    for (const OptionSpec* spec : form_->options()) {
        const QString key = textOf(spec->key), group = textOf(spec->group);
        if (skip_.contains(key)) {
            continue;
        }
        if (const qsizetype place = layout.basic.indexOf(key); place >= 0) {
            basic[static_cast<std::size_t>(place)] = spec;
            continue;
        }
        auto found = std::ranges::find(out, group, [](const auto& one) { return one.first; });
        if (found == out.end()) {
            found = out.insert(out.end(), {group, {}});
        }
        found->second.push_back(spec);
    }
    const auto place = [&](const auto& one) {
        const qsizetype at = layout.firstGroups.indexOf(one.first);
        return at < 0 ? layout.firstGroups.size() : at;
    };
    std::ranges::stable_sort(out, {}, place);
    std::erase(basic, nullptr);
    if (!basic.empty()) {
        out.insert(out.begin(), {QString(), std::move(basic)});
    }
    return out;
}

bool OptionForm::folded(const QString& group) const {
    return folds_.contains(group) && !unfolded_.contains(group);
}

void OptionForm::setFolded(const QString& group, bool folded) {
    if (folded) {
        unfolded_.erase(group);
    } else {
        unfolded_.insert(group);
    }
    showFold(group);
}

/// The head says how many fields of the group were changed: what is hidden counts too.
void OptionForm::showFold(const QString& group) {
    const auto found = folds_.find(group);
    if (found == folds_.end()) {
        return;
    }
    const auto changed = std::ranges::count_if(
        rows_, [&](const auto& row) { return row.second.group == group && form_->changed(row.first); });
    const Fold& fold = found->second;
    fold.head->setText(changed == 0 ? group : tr("%1, %2 changed").arg(group).arg(changed));
    fold.head->setIcon(icon(folded(group) ? QStringLiteral("chevron-right") : QStringLiteral("chevron-down")));
    fold.fields->setVisible(!folded(group));
}

/// Adds the head of a group to the page, and what holds its rows.
QLayout* OptionForm::addGroup(QWidget* page, const QString& group, bool folds, bool first) {
    auto* column = static_cast<QVBoxLayout*>(page->layout());
    auto* rows = new QFormLayout;
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(6);
    if (!folds) {
        auto* title =
            new TextLabel(group.isEmpty() ? tr("Basic") : group, TypeRole::Table, TextColor::Text1, true, page);
        title->setContentsMargins(0, first ? 0 : 12, 0, 4);
        column->addWidget(title);
        column->addLayout(rows);
        return rows;
    }
    Fold& fold = folds_[group];
    fold.head = new QPushButton(page);
    fold.head->setFlat(true);
    fold.head->setObjectName(QStringLiteral("fold.") + group);
    setControlHeight(fold.head, 26);
    fold.fields = new QWidget(page);
    fold.fields->setLayout(rows);
    rows->setContentsMargins(0, 2, 0, 6);
    column->addSpacing(4);
    column->addWidget(fold.head, 0, Qt::AlignLeft);
    column->addWidget(fold.fields);
    connect(fold.head, &QPushButton::clicked, this, [this, group] { setFolded(group, !folded(group)); });
    return rows;
}

} // namespace vitrine::ui

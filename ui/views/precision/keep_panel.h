// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The list of what could stay in BF16: check boxes with the bytes that each adds and what it saves of KL, the sum of
// the checked ones, and the buttons that measure and convert.

#include <QWidget>
#include <vector>

#include "ui/models/precision/keep_list.h"

class QCheckBox;
class QGridLayout;
class QPushButton;

namespace vitrine::ui {

class TextLabel;

class KeepPanel final : public QWidget {
    Q_OBJECT

public:
    explicit KeepPanel(QWidget* parent);
    /// What is checked stays checked while the rows are the same. `format` is a number in the result, not that of BF16.
    void setRows(PrecisionDataPtr shown, std::size_t format);
    void clear();
    const std::vector<KeepRow>& rows() const { return rows_; }
    QCheckBox* box(int row) const; ///< null for one that is kept anyway
    std::vector<std::string> checkedPatterns() const;
    QString sumText() const;
    QPushButton* measureButton() const { return measure_; }
    QPushButton* convertButton() const { return convert_; }

private:
    void addRow(int row);
    void updateSum();
    std::vector<bool> checked() const;

    PrecisionDataPtr data_;
    std::size_t format_ = 0;
    bool small_ = false; ///< bytes are in KiB
    std::vector<KeepRow> rows_;
    std::vector<QCheckBox*> boxes_; ///< null where a row has none to change
    QGridLayout* grid_;
    TextLabel *sumBytes_, *sumKl_, *note_;
    QPushButton *measure_, *convert_;
};

} // namespace vitrine::ui

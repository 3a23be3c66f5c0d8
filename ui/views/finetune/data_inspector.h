// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the data of a run come to: rows and tokens, what is cut and left out with its lines, lengths, sequences.

#include <QScrollArea>

#include "ui/models/finetune/data_text.h"
#include "ui/widgets/base/controls.h"

class QLabel;
class QVBoxLayout;

namespace vitrine::ui {

class FactRows;
class LengthPlot;
class LostTable;

class DataInspector final : public QScrollArea {
    Q_OBJECT

public:
    DataInspector();

    void setData(const DataSetPtr& set);
    /// `stepSeconds` 0: not known.
    void setStepSeconds(double seconds);
    /// Marks the range of lengths that the table of rows is filtered by.
    void setFilter(const RowFilter& filter);
    QString asText() const;
    QList<QWidget*> stops() const;

signals:
    void lineWanted(qint64 line);
    void tableWanted(const vitrine::ui::RowFilter& filter); ///< of these rows
    /// One line is to keep its end, or to be skipped: values of the option long_rows.
    void exceptionWanted(qint64 line, const QString& how);
    void readoutChanged(const QString& text);

private:
    void buildCut(QVBoxLayout* column);
    void linkToAllRows(TextLabel* label);
    void showTotals();
    void showCut();
    void showLeftOut();
    void showPacking();

    DataSetPtr set_;
    double stepSeconds_ = 0;
    QWidget *cut_ = nullptr, *noAnswer_ = nullptr, *leftOut_ = nullptr, *lengths_ = nullptr, *packing_ = nullptr;
    FactRows *totals_ = nullptr, *packed_ = nullptr;
    TextLabel *cutTrained_ = nullptr, *noAnswerText_ = nullptr, *leftOutRows_ = nullptr, *batch_ = nullptr,
              *axes_ = nullptr;
    QLabel* cutTitle_ = nullptr;
    LostTable* lost_ = nullptr;
    QLabel* leftOutLines_ = nullptr;
    LengthPlot* plot_ = nullptr;
    std::int64_t noAnswerLine_ = 0;
};

} // namespace vitrine::ui

//! A page: an answer as it is shown, with a title, sentences, and tables of cells. Text and HTML are made from it.

/// The contents of a page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title, which says what the answer is about.
    pub title: String,
    /// The answer in words, the most important first.
    pub sentences: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// Sections with details, below the figures.
    pub sections: Vec<Section>,
}

/// Items below a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The items, the most important first.
    pub items: Vec<Item>,
}

/// An item: a title, and the lines below it. A line that begins with two spaces is a command to type.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// The title.
    pub title: String,
    /// The lines below the title.
    pub lines: Vec<String>,
}

/// A table of cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The title.
    pub title: String,
    /// Whether the column has figures, which are aligned to the right.
    pub is_figure: bool,
}

impl Column {
    /// Makes a column of names.
    #[must_use]
    pub fn name(title: &str) -> Column {
        Column { title: title.to_owned(), is_figure: false }
    }

    /// Makes a column of figures.
    #[must_use]
    pub fn figure(title: &str) -> Column {
        Column { title: title.to_owned(), is_figure: true }
    }
}

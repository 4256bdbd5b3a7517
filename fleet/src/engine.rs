//! Runs SQL on a dataset with DataFusion, within a bounded memory.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::Dialect;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::object_store::ObjectMeta;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::future::try_join_all;
use tokio::runtime::{Builder, Runtime};

use crate::answer::Answer;
use crate::dataset::{DOCTOR, Dataset, TABLES};

/// Maximum memory of operators. Operators that need more write to temporary files.
const MAX_MEMORY_BYTES: usize = 640 << 20;
/// Maximum number of files of a table whose columns are read. Files of different versions may have
/// different columns; a missing column is NULL. Reading the footers of all files would double the
/// time of a question about many small ones.
const MAX_SAMPLED_FILES: usize = 32;

/// A dataset, ready for queries.
pub struct Engine {
    runtime: Runtime,
    context: SessionContext,
    dataset: Dataset,
    has_doctor: bool,
}

impl Engine {
    /// Opens a dataset. No row is read yet.
    ///
    /// # Errors
    /// When a file cannot be read, or is not a Parquet file.
    pub fn open(dataset: &Dataset) -> Result<Engine> {
        let runtime = Builder::new_multi_thread().enable_all().build().context("failed to start threads")?;
        let mut config = SessionConfig::new().with_collect_statistics(false);
        config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
        config.options_mut().execution.parquet.pushdown_filters = true;
        config.options_mut().execution.parquet.schema_force_view_types = true;
        // With this optimization, a join would filter the rows that it reads by the runs it has found. Almost every row has a run, so the
        // filter would only cost time.
        config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = false;
        let environment = RuntimeEnvBuilder::new().with_memory_limit(MAX_MEMORY_BYTES, 1.0).build_arc()?;
        let context = SessionContext::new_with_config_rt(config, environment);
        context.register_object_store(&dataset.url, dataset.store.clone());
        // `ask` registers the other tables when a query names them.
        runtime.block_on(register(&context, dataset, "runs"))?;
        let has_doctor = runtime.block_on(register(&context, dataset, DOCTOR))?;
        Ok(Engine { runtime, context, dataset: dataset.clone(), has_doctor })
    }

    /// Whether the dataset has findings of the doctor.
    #[must_use]
    pub fn has_doctor(&self) -> bool {
        self.has_doctor
    }

    /// Runs a query. Rejects statements that change anything.
    ///
    /// # Errors
    /// When the statement is not a query, or when it fails.
    pub fn ask(&self, sql: &str) -> Result<Answer> {
        let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        self.runtime.block_on(async {
            self.register_tables_of(sql).await?;
            let frame = self.context.sql_with_options(sql, only_queries).await?;
            let columns = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
            Answer::from_batches(columns, &frame.collect().await?)
        })
    }

    /// Registers the tables that a query names. Listing the files of other tables would take as long as a small question.
    async fn register_tables_of(&self, sql: &str) -> Result<()> {
        let state = self.context.state();
        let statement = state.sql_to_statement(sql, &Dialect::PostgreSQL)?;
        for reference in state.resolve_table_references(&statement)? {
            let named = TABLES.into_iter().find(|table| *table == reference.table());
            if let Some(table) = named
                && !self.context.table_exist(table)?
            {
                register(&self.context, &self.dataset, table).await?;
            }
        }
        Ok(())
    }
}

/// Registers the files of a table under its name. Returns whether the dataset has the table.
async fn register(context: &SessionContext, dataset: &Dataset, table: &str) -> Result<bool> {
    let files = dataset.files(table).await?;
    if files.is_empty() && table == DOCTOR {
        return Ok(false);
    }
    if files.is_empty() && table == "runs" {
        bail!(
            "the dataset has no recording yet: add one with `spawnscope export --format parquet -o DATASET RECORDING`"
        );
    }
    let format = Arc::new(ParquetFormat::default().with_enable_pruning(true));
    let schema = schema(context, dataset, format.as_ref(), files)
        .await
        .with_context(|| format!("failed to read the columns of table {table}"))?;
    let partitions = ["date", "job"].map(|name| (name.to_owned(), DataType::Utf8));
    let options = ListingOptions::new(format)
        .with_file_extension(".parquet")
        .with_table_partition_cols(partitions.to_vec())
        .with_collect_stat(false);
    let config = ListingTableConfig::new(ListingTableUrl::parse(dataset.table(table)?)?)
        .with_listing_options(options)
        .with_schema(Arc::new(schema));
    context.register_table(table, Arc::new(ListingTable::try_new(config)?))?;
    Ok(true)
}

/// Returns the columns of a table, from a sample of its files that is spread evenly over the dates.
async fn schema(
    context: &SessionContext,
    dataset: &Dataset,
    format: &ParquetFormat,
    files: Vec<ObjectMeta>,
) -> Result<Schema> {
    let state = context.state();
    let step = files.len().div_ceil(MAX_SAMPLED_FILES).max(1);
    let read = async |file: ObjectMeta| {
        let schema = format.infer_schema(&state, &dataset.store, std::slice::from_ref(&file)).await;
        let schema = schema.with_context(|| format!("{} is not a Parquet file", file.location))?;
        // The metadata has the version of the tables. Schemas with different versions could not be merged.
        anyhow::Ok(schema.as_ref().clone().with_metadata(HashMap::new()))
    };
    let schemas = try_join_all(files.into_iter().rev().step_by(step).map(read)).await?;
    Ok(Schema::try_merge(schemas)?)
}
